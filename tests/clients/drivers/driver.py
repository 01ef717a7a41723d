"""The line-by-line protocol between the tests and a program that drives one client library.

A line of JSON comes in for each cell and one goes out; what the answer is worth is not decided here.
"""

import json
import os
import sys
import traceback

import pydantic

DESCRIPTION = "What is known of a city"
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "which one"}},
    "required": ["city"],
    "additionalProperties": False,
}


class Recipe(pydantic.BaseModel):
    """How something is cooked."""

    title: str
    minutes: int
    vegetarian: bool
    ingredients: list[str]


class Lookup:
    """The one tool: what it was asked, and the secret that it gives."""

    def __init__(self, secret):
        self.secret = secret
        self.asked = []

    def __call__(self, city):
        self.asked.append(city)
        return f"{city} keeps {self.secret}"


class Driver:
    """A library's way of doing each cell; one that it has no way of doing is left out."""

    def __init__(self):
        self.gateway = os.environ["GATEWAY"]
        self.key = os.environ["GATEWAY_KEY"]
        self.model = os.environ["GATEWAY_MODEL"]

    def do(self, cell, prompt, secret):
        if not hasattr(self, cell):
            return {"absent": True}
        if cell == "tools":
            lookup = Lookup(secret)
            return {"text": self.tools(prompt, lookup), "asked": lookup.asked}
        if cell == "stream":
            return {"pieces": [piece for piece in self.stream(prompt) if piece]}
        if cell == "growing":
            return {"values": [plain(value) for value in self.growing(prompt)]}
        if cell == "json":
            return {"value": plain(self.json(prompt))}
        return {"text": self.text(prompt)}


def plain(value):
    return value.model_dump() if isinstance(value, pydantic.BaseModel) else value


def serve(drivers):
    """Runs the driver that the command line names, until stdin ends."""
    driver = drivers[sys.argv[1]]()
    # Libraries print too; only what is said here goes to the tests.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            answer = driver.do(**json.loads(line))
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
