"""What the command line clients have in common: how they are run, and what they are asked for."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import urllib.request

import cells
import isolation

# Long enough that only a hang reaches it.
LIMIT = 300
# Pieces that are still held back when the first one has arrived.
MANY = 300


class Cli:
    """A client whose cells are each a process of their own. Subclasses know one client's words."""

    rows = ("",)
    # The cells whose requests are worth keeping: others would be much the same.
    recorded = ("text", "tools")

    def __init__(self, directory):
        self.directory = directory

    def cells(self, row, model, setup):
        """Each cell's name with what it does: nothing when it is well, raises when it is not."""
        for cell in cells.CELLS:
            asked = getattr(self, cell) is not None
            yield cell, (lambda cell=cell: self.cell(cell, row, model, setup)) if asked else None

    def cell(self, cell, row, model, setup):
        with isolation.homes(setup.homes) as (home, work):
            run = Run(self, row, model, setup, home, work)
            self.prepare(run)
            getattr(self, cell)(run)

    def text(self, run):
        answer = f"The harbour is quiet, {cells.word()}."
        said = self.said(run.finish(self.command(run, f"mock:text={answer}")))
        cells.demand(said.strip() == answer, f"said {said!r}")

    def stream(self, run):
        name = cells.word()
        words = " ".join(f"{name}-{number}" for number in range(MANY))
        command = self.stream_command(run, f"mock:name={name} mock:wait={name} mock:text={words}")
        lines = run.finish_held(command, name, self.delta)
        said = "".join(filter(None, map(self.delta, lines)))
        cells.demand(said.strip() == words, f"the pieces make {said[:300]!r}")

    def tools(self, run):
        read, made = cells.word(), cells.word()
        (run.work / "secret.txt").write_text(f"{read}\n")
        # What is printed is not in the command, so only a shell can have made it.
        shell = f"echo {made} | tr a-z A-Z | tee made.txt"
        calls = " ".join(
            f"mock:tool={tool} mock:arguments={json.dumps(arguments)}"
            for tool, arguments in self.calls(run, shell, run.work / "secret.txt")
        )
        said = self.said(run.finish(self.tool_command(run, calls)))
        written = run.work / "made.txt"
        cells.demand(written.exists(), "the command did not run")
        cells.demand(written.read_text().strip() == made.upper(), f"made {written.read_text()!r}")
        for proof in (read, made.upper()):
            cells.demand(run.mock_received(proof), f"{proof} did not reach the model")
            cells.demand(proof in said, f"{proof} is not in what was said: {said!r}")
        cells.demand("The tools answered:" in said, f"said {said!r}")

    # What a subclass may say in its own way.

    def prepare(self, run):
        """Settings in the home, if the client wants any."""

    def tool_command(self, run, prompt):
        return self.command(run, prompt)

    def printed(self, stdout):
        """Its output in the pieces that `delta` takes."""
        return stdout

    def said(self, output):
        """The answer, from all that was printed."""
        return output


class Run:
    """One cell of one client."""

    def __init__(self, client, row, model, setup, home, work):
        self.client, self.row, self.model, self.setup = client, row, model, setup
        self.home, self.work = pathlib.Path(home), pathlib.Path(work)
        self.environment = isolation.environment(home, setup.refusing)

    def finish(self, command):
        """What the command prints until it ends."""
        with self.process(command) as child:
            output = child.stdout.read()
        self.judge(child, output)
        return output

    def finish_held(self, command, name, delta):
        """The lines that the command prints, when the model goes on only after the first piece was seen."""
        lines, seen = [], threading.Event()

        def read(stdout):
            for line in self.client.printed(stdout):
                lines.append(line)
                if not seen.is_set() and delta(line):
                    seen.set()
            seen.set()

        with self.process(command) as child:
            reader = threading.Thread(target=read, args=(child.stdout,))
            reader.start()
            while not seen.wait(0.2):
                self.post_signal(name)
            early = self.model_is_held(name)
            while reader.is_alive():
                self.post_signal(name)
                reader.join(0.001)
        self.judge(child, "".join(lines))
        cells.demand(early, "the first piece was seen only when the model had said all")
        return lines

    @contextlib.contextmanager
    def process(self, command):
        output = self.setup.output
        output.write(f"$ {' '.join(map(str, command))}\n")
        output.flush()
        child = subprocess.Popen(
            [str(word) for word in command],
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        child.late = False

        def end():
            child.late = True
            stop(child)

        timer = threading.Timer(LIMIT, end)
        timer.start()
        try:
            yield child
            child.wait()
        finally:
            timer.cancel()
            stop(child)
            child.stdout.close()

    def judge(self, child, output):
        self.setup.output.write(f"{output}\n= {child.returncode}\n")
        self.setup.output.flush()
        cells.demand(not child.late, f"not done after {LIMIT} s")
        cells.demand(child.returncode == 0, f"exit code {child.returncode}: {output[-300:]!r}")

    def mock_received(self, proof):
        return any(proof.encode() in exchange["body"] for exchange in self.setup.received.exchanges)

    def post_signal(self, name):
        request = urllib.request.Request(f"{self.setup.mock}/mock/signal/{name}", method="POST")
        DIRECT.open(request).close()

    def model_is_held(self, name):
        with DIRECT.open(f"{self.setup.mock}/mock/seen/{name}") as reply:
            seen = json.load(reply)
        return seen["finished"] == 0 and seen["cancelled"] == 0


DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def stop(child):
    """The client and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
