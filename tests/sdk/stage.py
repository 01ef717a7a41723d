"""A gateway and a mock as processes of their own; as a program: runs a command with them up."""

import contextlib
import os
import pathlib
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import urllib.request

FORMATS = ("chat", "messages", "native", "responses")

# Models that make pictures, by the format of their upstream.
PAINTERS = ("art-images", "art-native")

# The key of everything, one that opens only the models `first-*`, and one that nobody has.
KEY = "sk-of-everything"
KEY_OF_SOME = "sk-of-some"
KEY_OF_NOBODY = "sk-of-nobody"

# Above every prompt of the tests but the one that is meant to be too long.
BODY_LIMIT = 256 << 10

# A stream gives a sign of life after so much silence: often, where a prompt asks for pauses.
KEEP_ALIVE = "20ms"

# Long enough that only a hang reaches it.
PATIENCE = 60

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def first_model(upstream_format):
    """The model that every key opens, by the format of its upstream."""
    return f"first-{upstream_format}"


def second_model(upstream_format):
    """The model that only the key of everything opens; its upstream calls it otherwise."""
    return f"second-{upstream_format}"


@contextlib.contextmanager
def running(log=None, watch=contextlib.nullcontext):
    """Both processes, with their addresses; they are gone afterwards.

    `watch` may put something between them: a context, made with the mock's address, that gives another.
    """
    with contextlib.ExitStack() as stack:
        mock = stack.enter_context(process("mock", "--listen", "127.0.0.1:0", log=log))
        mock_url = "http://" + line_with(mock, "listens on http://").rsplit("http://", 1)[1]
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        listen, admin = free_addresses(2)
        file = directory / "gateway.yaml"
        file.write_text(config(stack.enter_context(watch(mock_url)), listen, admin))
        gateway = stack.enter_context(process("run", "-c", str(file), log=log))
        until_ready(gateway, admin)
        yield types.SimpleNamespace(gateway=f"http://{listen}", mock=mock_url)


def config(mock_url, listen, admin):
    lines = [
        f"server: {{listen: '{listen}', admin: '{admin}', body_limit: {BODY_LIMIT >> 10}KiB,",
        f"         timeouts: {{keep_alive: {KEEP_ALIVE}}}}}",
        "keys:",
        f"  - {{name: all, secret: {KEY}}}",
        f"  - {{name: some, secret: {KEY_OF_SOME}, models: ['first-*']}}",
        "upstreams:",
    ]
    for name in FORMATS:
        prefix = "/v1" if name in ("chat", "responses") else ""
        lines.append(f"  - {{name: mock-{name}, format: {name}, base_url: '{mock_url}{prefix}'}}")
    lines.append(f"  - {{name: mock-images, format: images, base_url: '{mock_url}/v1'}}")
    lines.append("models:")
    for id in PAINTERS:
        upstream = id.replace("art", "mock")
        lines.append(f"  - {{id: {id}, model_type: image, upstreams: [{{name: {upstream}}}]}}")
    for name in FORMATS:
        lines.append(f"  - {{id: {first_model(name)}, upstreams: [{{name: mock-{name}}}]}}")
        theirs = f"upstreams: [{{name: mock-{name}, model: theirs}}]"
        lines.append(f"  - {{id: {second_model(name)}, {theirs}}}")
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def process(*arguments, log=None):
    """A command of the binary, its lines in a queue; killed at the end."""
    binary = os.environ.get("OMNIGLOT", str(REPOSITORY / "target/debug/omniglot"))
    child = subprocess.Popen(
        [binary, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        encoding="utf-8",
    )
    child.lines = queue.SimpleQueue()
    reader = threading.Thread(target=read_lines, args=(child,), daemon=True)
    reader.start()
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        reader.join(PATIENCE)
        child.stdout.close()


def read_lines(child):
    for line in child.stdout:
        child.lines.put(line.rstrip("\n"))
    child.lines.put(None)


def line_with(child, words):
    until = time.monotonic() + PATIENCE
    while True:
        line = child.lines.get(timeout=max(0.0, until - time.monotonic()))
        if line is None:
            raise RuntimeError(f"{child.args} left before it said {words!r}")
        if words in line:
            return line


def until_ready(gateway, admin):
    """Waits until the gateway says on its admin port that it takes requests."""
    until = time.monotonic() + PATIENCE
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        if gateway.poll() is not None:
            raise RuntimeError(f"{gateway.args} left before it was ready")
        try:
            with opener.open(f"http://{admin}/readyz", timeout=PATIENCE):
                return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def free_addresses(count):
    """Ports that were free a moment ago, each another one."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for held in sockets:
            held.bind(("127.0.0.1", 0))
        return ["{}:{}".format(*held.getsockname()) for held in sockets]


def main(command):
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        with running(log) as stage:
            words = {
                "OMNIGLOT_GATEWAY": stage.gateway,
                "OMNIGLOT_KEY": KEY,
                "OMNIGLOT_KEY_OF_SOME": KEY_OF_SOME,
                "OMNIGLOT_KEY_OF_NOBODY": KEY_OF_NOBODY,
                "OMNIGLOT_BODY_LIMIT": str(BODY_LIMIT),
            }
            status = subprocess.run(command, env={**os.environ, **words}).returncode
        if status:
            log.seek(0)
            print("What the gateway logged:", log.read(), sep="\n", flush=True)
        return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
