"""Recorded traffic, translated to every other format, is valid for the official SDKs' types.

The corpus is next to the checkout or where OMNIGLOT_CORPUS says; it is not part of the repository.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess

import pytest

import official_types
import processes

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = pathlib.Path(os.environ.get("OMNIGLOT_CORPUS", ROOT.parent / "shared" / "corpus"))


def recordings():
    for index in sorted(CORPUS.glob("*/index.json")):
        for entry in json.loads(index.read_text()):
            yield index.parent / entry["format"], entry


def translate(source, target, kind, text, *more):
    """Returns the translated text; `None` if it is refused, which other tests check."""
    command = [os.environ["OMNIGLOT"], "translate", "--from", source, "--to", target, "--kind", kind]
    done = subprocess.run([*command, *more], input=text, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.decode() if done.returncode == 0 else None


def files(suffix, status=200):
    """Yields entry, name and content of the recorded files with a suffix."""
    for folder, entry in recordings():
        path = folder / f"{entry['case']}.{suffix}"
        if entry["status"] == status and path.is_file():
            yield entry, f"{entry['format']}/{entry['case']}", path.read_bytes()


def find_problems(check, suffix):
    """Returns the problems, as lines, and the number of checked translations."""
    pairs = [
        (entry, name, content, target)
        for entry, name, content in files(suffix)
        for target in processes.FORMATS
        if target != entry["format"]
    ]
    # Each translation is a process: two at a time keep two cores busy.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda pair: find_problem(check, *pair), pairs))
    assert results.count(None) < len(results), "everything is refused"
    return [line for line in results if line], sum(line is not None for line in results)


# Recorded data that is not valid base64 is passed through.
INVALID_BASE64 = "Invalid last symbol"


def find_problem(check, entry, name, content, target):
    """Returns a problem as a line, an empty line if there is none, and `None` if the translation is refused."""
    try:
        return "" if check(entry, content, target) else None
    except Exception as error:  # Every exception of an SDK's types is a problem.
        if INVALID_BASE64 in str(error):
            return ""
        return f"{name} in {target}: {type(error).__name__}: {str(error)[:2000]}"


def check_request(entry, content, target):
    model = ["--model", entry["model"] or "m"]
    stream = ["--stream"] if ":streamGenerateContent" in entry["url"] else []
    text = translate(entry["format"], target, "request", content, *model, *stream)
    if text is not None:
        official_types.REQUESTS[target](json.loads(text))
    return text is not None


def check_response(entry, content, target):
    text = translate(entry["format"], target, "response", content)
    if text is not None:
        official_types.RESPONSES[target](json.loads(text))
    return text is not None


def check_stream(entry, content, target):
    text = translate(entry["format"], target, "stream", content, "--include-usage")
    payloads = list(official_types.events(text))
    # The SDKs raise an error event; the events before it must be valid.
    valid = [payload for payload in payloads if not is_error(payload)]
    if valid:
        official_types.STREAMS[target](valid, valid == payloads)
    return bool(valid)


def is_error(payload):
    return "error" in payload or payload.get("type") in ("error", "response.failed")


@pytest.mark.parametrize(
    ("check", "suffix"),
    [(check_request, "request.json"), (check_response, "response.json"), (check_stream, "sse")],
    ids=["requests", "responses", "streams"],
)
def test_recorded(check, suffix):
    if not CORPUS.is_dir():
        pytest.skip(f"no recordings in {CORPUS}")
    problems, count = find_problems(check, suffix)
    print(f"{count} checked")
    assert not problems, f"{len(problems)} of {count}:\n" + "\n".join(problems)
