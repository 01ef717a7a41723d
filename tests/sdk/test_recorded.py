"""Recorded traffic in the words of every other format, as the official SDKs' types take it.

The corpus stands beside the checkout or where OMNIGLOT_CORPUS says, and nothing of it is kept here.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess

import pytest

import official_types
import stage as processes

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = pathlib.Path(os.environ.get("OMNIGLOT_CORPUS", ROOT.parent / "shared" / "corpus"))


def recordings():
    for index in sorted(CORPUS.glob("*/index.json")):
        for entry in json.loads(index.read_text()):
            yield index.parent / entry["format"], entry


def translated(source, target, kind, text, *more):
    """What it becomes; `None`: it is refused, which other tests look into."""
    command = [os.environ["OMNIGLOT"], "translate", "--from", source, "--to", target, "--kind", kind]
    done = subprocess.run([*command, *more], input=text, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.decode() if done.returncode == 0 else None


def files(ending, status=200):
    """Format, name and content of the recorded files of one kind."""
    for folder, entry in recordings():
        path = folder / f"{entry['case']}.{ending}"
        if entry["status"] == status and path.is_file():
            yield entry, f"{entry['format']}/{entry['case']}", path.read_bytes()


def problems_of(work, ending):
    """All that is wrong, as lines, and how many were looked at."""
    pairs = [
        (entry, name, content, target)
        for entry, name, content in files(ending)
        for target in processes.FORMATS
        if target != entry["format"]
    ]
    # The translator is a process of its own: two at a time keep two cores busy.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda pair: problem(work, *pair), pairs))
    assert found.count(None) < len(found), "everything is refused"
    return [line for line in found if line], sum(line is not None for line in found)


# What was recorded with data that is no base64 is passed on as it is.
BROKEN_DATA = "Invalid last symbol"


def problem(work, entry, name, content, target):
    """`None`: refused; empty: all is well."""
    try:
        return "" if work(entry, content, target) else None
    except Exception as error:  # Whatever an SDK's types may raise is what is looked for.
        if BROKEN_DATA in str(error):
            return ""
        return f"{name} in {target}: {type(error).__name__}: {str(error)[:2000]}"


def request(entry, content, target):
    model = ["--model", entry["model"] or "m"]
    stream = ["--stream"] if ":streamGenerateContent" in entry["url"] else []
    said = translated(entry["format"], target, "request", content, *model, *stream)
    if said is not None:
        official_types.REQUESTS[target](json.loads(said))
    return said is not None


def reply(entry, content, target):
    said = translated(entry["format"], target, "response", content)
    if said is not None:
        official_types.REPLIES[target](json.loads(said))
    return said is not None


def stream(entry, content, target):
    said = translated(entry["format"], target, "stream", content, "--include-usage")
    payloads = list(official_types.events(said))
    # A stream that breaks ends as the SDKs raise it; what came before must be right all the same.
    whole = [payload for payload in payloads if not is_error(payload)]
    if whole:
        official_types.STREAMS[target](whole, whole == payloads)
    return bool(whole)


def is_error(payload):
    return "error" in payload or payload.get("type") in ("error", "response.failed")


@pytest.mark.parametrize(
    ("work", "ending"),
    [(request, "request.json"), (reply, "response.json"), (stream, "sse")],
    ids=["requests", "replies", "streams"],
)
def test_recorded(work, ending):
    if not CORPUS.is_dir():
        pytest.skip(f"no recordings in {CORPUS}")
    problems, count = problems_of(work, ending)
    print(f"{count} looked at")
    assert not problems, f"{len(problems)} of {count}:\n" + "\n".join(problems)
