"""Samples for the requests of every format: tools, an image, a document, audio and a schema."""

import base64

import pydantic

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "where"}},
    "required": ["city"],
    "additionalProperties": False,
}

TOOLS = ("get_weather", "get_time")

# One pixel.
IMAGE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


# Nothing parses these.
DOCUMENT = b"%PDF-1.4 nothing on it"
AUDIO = b"RIFF\x24\0\0\0WAVEfmt silence"


class Recipe(pydantic.BaseModel):
    """A schema with a list, a boolean and a number."""

    title: str
    minutes: int
    vegetarian: bool
    ingredients: list[str]
