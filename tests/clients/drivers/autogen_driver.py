"""AutoGen: chat and messages."""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ModelClientStreamingChunkEvent
from autogen_core.tools import FunctionTool
from autogen_ext.models.anthropic import AnthropicChatCompletionClient
from autogen_ext.models.openai import OpenAIChatCompletionClient
from driver import DESCRIPTION, Recipe, Driver, serve

# It knows some models by their names and wants to be told of the others.
ABLE = {
    "family": "unknown",
    "vision": False,
    "function_calling": True,
    "json_output": True,
    "structured_output": True,
}


class AutoGen(Driver):
    suffix = ""

    def agent(self, **settings):
        address = {"base_url": f"{self.gateway}{self.suffix}", "api_key": self.key}
        client = self.kind(model=self.model, model_info=ABLE, **address)
        return AssistantAgent("guide", client, **settings)

    def run(self, prompt, **settings):
        """The last message of one question."""
        return asyncio.run(self.agent(**settings).run(task=prompt)).messages[-1]

    def text(self, prompt):
        return self.run(prompt).content

    def stream(self, prompt):
        async def pieces():
            agent = self.agent(model_client_stream=True)
            events = agent.run_stream(task=prompt)
            return [
                event.content
                async for event in events
                if isinstance(event, ModelClientStreamingChunkEvent)
            ]

        return asyncio.run(pieces())

    def tools(self, prompt, lookup):
        def find(city: str) -> str:
            return lookup(city)

        tool = FunctionTool(find, name="lookup", description=DESCRIPTION)
        return self.run(prompt, tools=[tool], reflect_on_tool_use=True).content


class Chat(AutoGen):
    kind, suffix = OpenAIChatCompletionClient, "/v1"

    def json(self, prompt):
        return self.run(prompt, output_content_type=Recipe).content


class Messages(AutoGen):
    kind = AnthropicChatCompletionClient


serve({"chat": Chat, "messages": Messages})
