"""What every client is asked, and how its answer is judged."""

import json
import secrets

CELLS = ("text", "stream", "tools", "json")

# A shape with text, a number, a choice and a list in it.
SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "minutes": {"type": "integer"},
        "vegetarian": {"type": "boolean"},
        "ingredients": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["title", "minutes", "vegetarian", "ingredients"],
    "additionalProperties": False,
}
KINDS = {"title": str, "minutes": int, "vegetarian": bool, "ingredients": list}


class Wrong(Exception):
    """A cell's answer is not what it should be."""


def word():
    """One that nobody can have guessed."""
    return "w" + secrets.token_hex(4)


def demand(holds, message):
    if not holds:
        raise Wrong(message)


def check_shape(value):
    demand(isinstance(value, dict), f"no object: {value!r}")
    demand(set(value) == set(KINDS), f"other fields: {sorted(value)}")
    for name, kind in KINDS.items():
        demand(type(value[name]) is kind, f"{name} is {value[name]!r}")
    demand(all(type(item) is str for item in value["ingredients"]), "an ingredient is no text")


def read_json(text):
    try:
        return json.loads(text)
    except ValueError as error:
        raise Wrong(f"no JSON: {error}: {text[:300]!r}") from error
