"""Semantic Kernel: chat, messages and native. Its agent for responses says every question twice."""

import asyncio

from anthropic import AsyncAnthropic
from driver import DESCRIPTION, Recipe, Driver, serve
from google.genai import Client
from google.genai.types import HttpOptions
from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.anthropic import AnthropicChatCompletion
from semantic_kernel.connectors.ai.google.google_ai import GoogleAIChatCompletion
from semantic_kernel.connectors.ai.google.google_ai import GoogleAIChatPromptExecutionSettings
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.connectors.ai.open_ai import OpenAIChatPromptExecutionSettings
from semantic_kernel.functions import KernelArguments, kernel_function


class Plugin:
    def __init__(self, lookup):
        self.find = lookup

    @kernel_function(name="lookup", description=DESCRIPTION)
    def lookup(self, city: str) -> str:
        return self.find(city)


class SemanticKernel(Driver):
    def agent(self, settings=None, plugins=()):
        arguments = KernelArguments(settings=settings) if settings else None
        named = {"name": "guide", "plugins": list(plugins), "arguments": arguments}
        return ChatCompletionAgent(service=self.service(), **named)

    def ask(self, prompt, **settings):
        async def answer():
            return await self.agent(**settings).get_response(messages=prompt)

        return str(asyncio.run(answer()).message)

    def text(self, prompt):
        return self.ask(prompt)

    def stream(self, prompt):
        async def pieces():
            stream = self.agent().invoke_stream(messages=prompt)
            return [str(item.message) async for item in stream]

        return asyncio.run(pieces())

    def tools(self, prompt, lookup):
        # A tool's name has that of its plugin in front.
        asked = prompt.replace("mock:tool=lookup", "mock:tool=Plugin-lookup")
        return self.ask(asked, plugins=[Plugin(lookup)])


class Chat(SemanticKernel):
    def service(self):
        client = AsyncOpenAI(base_url=f"{self.gateway}/v1", api_key=self.key, max_retries=0)
        return OpenAIChatCompletion(ai_model_id=self.model, async_client=client)

    def json(self, prompt):
        settings = OpenAIChatPromptExecutionSettings(response_format=Recipe)
        return Recipe.model_validate_json(self.ask(prompt, settings=settings))


class Messages(SemanticKernel):
    def service(self):
        client = AsyncAnthropic(base_url=self.gateway, api_key=self.key, max_retries=0)
        named = {"ai_model_id": self.model, "api_key": self.key}
        return AnthropicChatCompletion(async_client=client, **named)


class Native(SemanticKernel):
    def service(self):
        client = Client(api_key=self.key, http_options=HttpOptions(base_url=self.gateway))
        return GoogleAIChatCompletion(gemini_model_id=self.model, api_key=self.key, client=client)

    def json(self, prompt):
        shape = {"response_mime_type": "application/json", "response_schema": Recipe}
        settings = GoogleAIChatPromptExecutionSettings(**shape)
        return Recipe.model_validate_json(self.ask(prompt, settings=settings))


serve({"chat": Chat, "messages": Messages, "native": Native})
