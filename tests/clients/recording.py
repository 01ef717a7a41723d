"""What a client sent, made fit to be kept: no prose of its makers, nothing of this machine, nothing of today."""

import json
import re

from installed import HERE

RECORDINGS = HERE / "recordings"
# Those that say what is spoken, or carry the key.
HEADERS = (
    "accept",
    "anthropic-beta",
    "anthropic-version",
    "authorization",
    "x-api-key",
    "x-goog-api-client",
    "x-goog-api-key",
)
LONGEST_TEXT = 120
# Arguments and results of tools, which are short.
LONGEST_DATA = 400
HOME = re.compile(r"/[\w./-]*/home-\w+")
# What is new every time: each kind with what stands for the first, the second, and so on.
FRESH = (
    (re.compile(r"(?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])"), "00000000-0000-4000-8000-{:012}"),
    (re.compile(r"(?<![0-9a-f])[0-9a-f]{32,64}(?![0-9a-f])"), "{:032}"),
    (re.compile(r"(?<!\d)1[789]\d{11}(?!\d)"), "17000000000{:02}"),
    (re.compile(r"(?<=PGID: )\d+"), "{}"),
    (re.compile(r"[wW][0-9a-fA-F]{8}(?![0-9a-fA-F])"), "word{}"),
)


def requests(cell, exchanges, key, model):
    """The questions of a cell, in order; counters and lists are asked as they always are."""
    for exchange in exchanges:
        path = exchange["path"].replace(model, "{model}")
        if exchange["method"] != "POST" or "ount" in path:
            continue
        headers = {name.lower(): value for name, value in exchange["headers"].items()}
        kept = {name: headers[name].replace(key, "{key}") for name in HEADERS if name in headers}
        body = shortened(json.loads(exchange["body"]))
        if "model" in body:
            body["model"] = "{model}"
        yield {"cell": cell, "path": path, "headers": kept, "body": body}


def shortened(value):
    if isinstance(value, dict):
        return {name: shortened(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shortened(inner) for inner in value]
    if isinstance(value, str) and len(value) > LONGEST_TEXT and "mock:" not in value and not is_data(value):
        return f"A text of {len(value)} characters."
    return value


def is_data(text):
    """JSON inside of JSON, like the arguments of a call and what a tool gave, is structure."""
    return len(text) <= LONGEST_DATA and text.startswith(("{", "[", "data:"))


def keep(client, row, format, asked):
    """Writes the recording of one client in one format, a line for each request."""
    lines = ",\n".join(json.dumps(request) for request in asked)
    text = HOME.sub("/client", lines)
    for pattern, stable in FRESH:
        text = pattern.sub(numbered(stable), text)
    head = f'"client": "{client.name}", "format": "{format}"'
    RECORDINGS.mkdir(exist_ok=True)
    file = RECORDINGS / f"{client.name}-{row or format}.json"
    file.write_text(f'{{{head}, "requests": [\n{text}\n]}}\n')


def numbered(stable):
    """The same name for the same thing, in the order in which they come."""
    seen = {}
    return lambda found: seen.setdefault(found[0], stable.format(len(seen) + 1))
