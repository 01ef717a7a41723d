"""smolagents: chat."""

from driver import Recipe, Driver, serve
from smolagents import ChatMessage, LogLevel, MessageRole, OpenAIModel, ToolCallingAgent, tool

SHAPE = {
    "type": "json_schema",
    "json_schema": {
        "name": "recipe",
        "strict": True,
        "schema": Recipe.model_json_schema() | {"additionalProperties": False},
    },
}


class Chat(Driver):
    def llm(self):
        return OpenAIModel(self.model, api_base=f"{self.gateway}/v1", api_key=self.key)

    def text(self, prompt):
        return self.llm().generate(asking(prompt)).content

    def stream(self, prompt):
        for delta in self.llm().generate_stream(asking(prompt)):
            yield delta.content

    def tools(self, prompt, find):
        @tool
        def lookup(city: str) -> str:
            """What is known of a city

            Args:
                city: which one
            """
            return find(city)

        quiet = {"verbosity_level": LogLevel.OFF}
        return ToolCallingAgent([lookup], self.llm(), max_steps=3, **quiet).run(prompt)

    def json(self, prompt):
        said = self.llm().generate(asking(prompt), response_format=SHAPE).content
        return Recipe.model_validate_json(said)


def asking(prompt):
    return [ChatMessage(role=MessageRole.USER, content=prompt)]


serve({"chat": Chat})
