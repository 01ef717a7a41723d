"""Starts a gateway and a mock as processes; as a program, runs a command while they run."""

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

# Models that generate images, by the format of their upstream.
IMAGE_MODELS = ("art-images", "art-native")

# Models that make embeddings, by the format of their upstream.
EMBEDDING_MODELS = ("vector-chat", "vector-native", "vector-responses")

# Models of the endpoints that only pass through, by their type and the format of their upstream.
ENDPOINT_MODELS = ("completion-chat", "completion-responses", "moderation-chat", "moderation-responses", "audio-chat", "audio-responses")

# The key for every model, one for the models `first-*` only, and one that the gateway does not know.
KEY = "sk-of-everything"
LIMITED_KEY = "sk-of-some"
UNKNOWN_KEY = "sk-of-nobody"

# Larger than every prompt but the one that must be refused as too large.
BODY_LIMIT = 256 << 10

# How long a stream is idle before the gateway sends a keep-alive, less than the pauses that the tests ask for.
KEEP_ALIVE = "20ms"

# Long enough that only a hang reaches it.
TIMEOUT = 60

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def first_model(upstream_format):
    """Returns the model that every key may use, by the format of its upstream."""
    return f"first-{upstream_format}"


def second_model(upstream_format):
    """Returns the model that only the key for every model may use; its upstream has another name for it."""
    return f"second-{upstream_format}"


@contextlib.contextmanager
def running(log=None, watch=contextlib.nullcontext):
    """Runs both processes, yields their addresses, and ends them afterwards.

    `watch` may put a proxy between them: a context manager that takes the mock's address and yields another.
    """
    with contextlib.ExitStack() as stack:
        mock = stack.enter_context(process("mock", "--listen", "127.0.0.1:0", log=log))
        mock_url = "http://" + line_with(mock, "listens on http://").rsplit("http://", 1)[1]
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        listen, admin = free_addresses(2)
        file = directory / "gateway.yaml"
        file.write_text(encode_config(stack.enter_context(watch(mock_url)), listen, admin))
        gateway = stack.enter_context(process("run", "-c", str(file), log=log))
        wait_until_ready(gateway, admin)
        yield types.SimpleNamespace(gateway=f"http://{listen}", mock=mock_url)


def encode_config(mock_url, listen, admin):
    lines = [
        f"server: {{listen: '{listen}', admin: '{admin}', body_limit: {BODY_LIMIT >> 10}KiB,",
        f"         timeouts: {{keep_alive: {KEEP_ALIVE}}}}}",
        "keys:",
        f"  - {{name: all, secret: {KEY}}}",
        f"  - {{name: some, secret: {LIMITED_KEY}, models: ['first-*']}}",
        "upstreams:",
    ]
    for name in FORMATS:
        prefix = "/v1" if name in ("chat", "responses") else ""
        lines.append(f"  - {{name: mock-{name}, format: {name}, base_url: '{mock_url}{prefix}'}}")
    lines.append(f"  - {{name: mock-images, format: images, base_url: '{mock_url}/v1'}}")
    lines.append("models:")
    for id in IMAGE_MODELS:
        upstream = id.replace("art", "mock")
        lines.append(f"  - {{id: {id}, model_type: image, upstreams: [{{name: {upstream}}}]}}")
    for id in EMBEDDING_MODELS:
        upstream = f"{{name: {id.replace('vector', 'mock')}, model: theirs}}"
        lines.append(f"  - {{id: {id}, model_type: embedding, upstreams: [{upstream}]}}")
    for id in ENDPOINT_MODELS:
        model_type, name = id.split("-")
        upstream = f"{{name: mock-{name}, model: theirs}}"
        lines.append(f"  - {{id: {id}, model_type: {model_type}, upstreams: [{upstream}]}}")
    for name in FORMATS:
        lines.append(f"  - {{id: {first_model(name)}, upstreams: [{{name: mock-{name}}}]}}")
        upstreams = f"upstreams: [{{name: mock-{name}, model: theirs}}]"
        lines.append(f"  - {{id: {second_model(name)}, {upstreams}}}")
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def process(*arguments, log=None):
    """Runs a command of the binary with the lines of its stdout in a queue, and kills it at the end."""
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
        reader.join(TIMEOUT)
        child.stdout.close()


def read_lines(child):
    for line in child.stdout:
        child.lines.put(line.rstrip("\n"))
    child.lines.put(None)


def line_with(child, text):
    """Waits for a line of stdout that contains the text."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        line = child.lines.get(timeout=max(0.0, deadline - time.monotonic()))
        if line is None:
            raise RuntimeError(f"{child.args} exited before it printed {text!r}")
        if text in line:
            return line


def wait_until_ready(gateway, admin):
    """Waits until the gateway responds to /readyz on its admin port."""
    deadline = time.monotonic() + TIMEOUT
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        if gateway.poll() is not None:
            raise RuntimeError(f"{gateway.args} exited before it was ready")
        try:
            with opener.open(f"http://{admin}/readyz", timeout=TIMEOUT):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def free_addresses(count):
    """Returns addresses with different ports that are free."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return ["{}:{}".format(*listener.getsockname()) for listener in sockets]


def main(command):
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        with running(log) as servers:
            variables = {
                "OMNIGLOT_GATEWAY": servers.gateway,
                "OMNIGLOT_KEY": KEY,
                "OMNIGLOT_LIMITED_KEY": LIMITED_KEY,
                "OMNIGLOT_UNKNOWN_KEY": UNKNOWN_KEY,
                "OMNIGLOT_BODY_LIMIT": str(BODY_LIMIT),
            }
            status = subprocess.run(command, env={**os.environ, **variables}).returncode
        if status:
            log.seek(0)
            print("The log of the gateway:", log.read(), sep="\n", flush=True)
        return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
