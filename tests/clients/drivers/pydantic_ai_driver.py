"""Pydantic AI: all four formats."""

import asyncio

from driver import DESCRIPTION, Recipe, Driver, serve
from pydantic_ai import Agent, Tool
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider


class PydanticAi(Driver):
    suffix = ""

    def agent(self, **settings):
        provider = self.provider(api_key=self.key, base_url=f"{self.gateway}{self.suffix}")
        return Agent(self.kind(self.model, provider=provider), **settings)

    def text(self, prompt):
        return self.agent().run_sync(prompt).output

    def stream(self, prompt):
        async def pieces():
            async with self.agent().run_stream(prompt) as run:
                return [piece async for piece in run.stream_text(delta=True, debounce_by=None)]

        return asyncio.run(pieces())

    def tools(self, prompt, lookup):
        def find(city: str) -> str:
            return lookup(city)

        tool = Tool(find, name="lookup", description=DESCRIPTION)
        return self.agent(tools=[tool]).run_sync(prompt).output

    def json(self, prompt):
        return self.agent(output_type=Recipe).run_sync(prompt).output


class Chat(PydanticAi):
    kind, provider, suffix = OpenAIChatModel, OpenAIProvider, "/v1"


class Responses(PydanticAi):
    kind, provider, suffix = OpenAIResponsesModel, OpenAIProvider, "/v1"


class Messages(PydanticAi):
    kind, provider = AnthropicModel, AnthropicProvider


class Native(PydanticAi):
    kind, provider = GoogleModel, GoogleProvider


serve({"chat": Chat, "responses": Responses, "messages": Messages, "native": Native})
