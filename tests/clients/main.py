"""Runs clients through the gateway and prints what held, as a table."""

import argparse
import contextlib
import pathlib
import shutil
import sys
import traceback
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sdk"))

import cells
import installed
import isolation
import processes
import recording
from aider import Aider
from claude import Claude
from codex import Codex
from continue_cli import Continue
from copilot import Copilot
from gemini import Gemini
from library import LIBRARIES
from llm import Llm
from opencode import Opencode
from pi import Pi
from qwen import Qwen
from recorder import Recorder

COMMANDS = (Claude, Codex, Gemini, Copilot, Pi, Opencode, Qwen, Continue, Llm, Aider)
CLIENTS = {client.name: client for client in (*COMMANDS, *LIBRARIES)}
# The least that a change should be tried with: the one that starts fastest.
QUICK = "codex"
LOGS = installed.TARGET / "logs"


def main():
    wanted = read_arguments()
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    rows = []
    for name in wanted.clients:
        client = CLIENTS[name](installed.install(CLIENTS[name].package))
        for row in client.rows:
            rows += [record_row(client, row)] if wanted.record else run_row(client, row)
    print_table(rows)
    failed = sum(len(row.failures) for row in rows)
    count = sum(outcome == "ok" for row in rows for outcome in row.outcomes.values())
    print(f"\n{count} ok, {failed} failed" + (f"; see {LOGS}" if failed else ""))
    return 1 if failed else 0


def read_arguments():
    parser = argparse.ArgumentParser(prog="tests/clients/run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"only {QUICK}")
    parser.add_argument("--record", action="store_true", help="keep what they send, for the tests in tests/gateway/recordings.rs")
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=", ".join(CLIENTS))
    wanted = parser.parse_args()
    for name in wanted.clients:
        if name not in CLIENTS:
            parser.error(f"no such client: {name}")
    wanted.clients = wanted.clients or ([QUICK] if wanted.quick else list(CLIENTS))
    return wanted


def run_row(client, row):
    """One client and format on every model."""
    for upstream in processes.FORMATS:
        yield run_model(client, row, upstream)


def run_model(client, row, upstream, sent=None):
    """One client and format on one model; the gateway is its own, so that its log is too."""
    label = f"{client.name} {row}".strip()
    file = LOGS / f"{label}-{upstream}".replace(" ", "-")
    done = types.SimpleNamespace(client=label, model=upstream, outcomes={}, failures=[])
    with test_setup(file, sent) as setup:
        for cell, run in client.cells(row, processes.first_model(upstream), setup):
            setup.received.take()
            done.outcomes[cell] = outcome(run, done, cell, file)
            if sent is not None:
                sent.cells[cell] = sent.take()
    if not done.failures:
        for kept in file.parent.glob(f"{file.name}.*"):
            kept.unlink()
    print_row(done)
    return done


def record_row(client, row):
    """On the model whose upstream has the format of the client, so that nothing of the gateway is in what it sends."""
    format = row if row in processes.FORMATS else client.format
    sent = Recorder()
    sent.cells = {}
    done = run_model(client, row, format, sent)
    model = processes.first_model(format)
    asked = [
        request
        for cell, exchanges in sent.cells.items()
        if cell in client.recorded
        for request in recording.requests(cell, exchanges, processes.KEY, model)
    ]
    recording.keep(client, row, format, asked)
    return done


@contextlib.contextmanager
def test_setup(file, sent=None):
    """A gateway on a mock, with all that a client has to be told."""
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(open(f"{file}.gateway", "w", encoding="utf-8"))
        received = Recorder()
        setup = stack.enter_context(processes.running(log, received.watching))
        setup.received = received
        if sent is not None:
            setup.gateway = stack.enter_context(sent.watching(setup.gateway))
        setup.key = processes.KEY
        setup.refusing = stack.enter_context(isolation.no_way_out())
        setup.homes = installed.TARGET / "homes"
        setup.output = stack.enter_context(open(f"{file}.output", "w", encoding="utf-8"))
        yield setup


def outcome(run, done, cell, file):
    if run is None:
        return "n/a"
    try:
        return run() or "ok"
    except Exception as error:
        done.failures.append(f"{cell}: {error}")
        with open(f"{file}.failures", "a", encoding="utf-8") as kept:
            kept.write(f"{cell}: {''.join(traceback.format_exception(error))}\n")
        return "FAIL"


LINE = "{:<28} {:<10} " + " ".join("{:<6}" for _ in cells.CELLS)


def print_row(row):
    outcomes = [row.outcomes.get(cell, "FAIL") for cell in cells.CELLS]
    print(LINE.format(row.client, row.model, *outcomes), flush=True)
    for failure in row.failures:
        print(f"    {failure[:400]}", flush=True)


def print_table(rows):
    print()
    print(LINE.format("client", "model", *cells.CELLS))
    for row in rows:
        print(LINE.format(row.client, row.model, *row.outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
