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


class Recipe(pydantic.BaseModel):
    """A shape with a list, a choice and numbers in it."""

    title: str
    minutes: int
    vegetarian: bool
    ingredients: list[str]
