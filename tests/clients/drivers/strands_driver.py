"""Strands Agents: all four formats."""

import asyncio

import strands
from driver import DESCRIPTION, Recipe, Driver, serve
from strands.models.anthropic import AnthropicModel
from strands.models.gemini import GeminiModel
from strands.models.openai import OpenAIModel
from strands.models.openai_responses import OpenAIResponsesModel


class Strands(Driver):
    settings = {}

    def agent(self, *tools):
        client = {"api_key": self.key, **self.address()}
        model = self.kind(client_args=client, model_id=self.model, **self.settings)
        return strands.Agent(model=model, tools=list(tools), callback_handler=None)

    def text(self, prompt):
        return said(self.agent()(prompt))

    def stream(self, prompt):
        async def pieces():
            return [event.get("data") async for event in self.agent().stream_async(prompt)]

        return asyncio.run(pieces())

    def tools(self, prompt, lookup):
        @strands.tool(name="lookup", description=DESCRIPTION)
        def find(city: str) -> str:
            return lookup(city)

        return said(self.agent(find)(prompt))

    def json(self, prompt):
        return self.agent()(prompt, structured_output_model=Recipe).structured_output


def said(result):
    """What the agent said last; it always streams from the model, and puts this together."""
    return "".join(block.get("text", "") for block in result.message["content"])


class Chat(Strands):
    kind = OpenAIModel

    def address(self):
        return {"base_url": f"{self.gateway}/v1"}


class Responses(Chat):
    kind = OpenAIResponsesModel


class Messages(Strands):
    kind, settings = AnthropicModel, {"max_tokens": 1000}

    def address(self):
        return {"base_url": self.gateway}


class Native(Strands):
    kind = GeminiModel

    def address(self):
        return {"http_options": {"base_url": self.gateway}}


serve({"chat": Chat, "responses": Responses, "messages": Messages, "native": Native})
