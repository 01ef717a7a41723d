"""What every format is asked about: tools, a picture, a shape of output."""

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
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


# Nobody looks into these.
PAPER = b"%PDF-1.4 nothing on it"
SOUND = b"RIFF\x24\0\0\0WAVEfmt silence"


class Recipe(pydantic.BaseModel):
    """A shape with a list, a choice and numbers in it."""

    title: str
    minutes: int
    vegetarian: bool
    ingredients: list[str]
