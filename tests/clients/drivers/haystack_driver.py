"""Haystack: all four formats."""

import os

from driver import DESCRIPTION, PARAMETERS, Recipe, Driver, serve
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool
from haystack.utils import Secret
from haystack_integrations.components.generators.anthropic import AnthropicChatGenerator
from haystack_integrations.components.generators.google_genai import GoogleGenAIChatGenerator


class Haystack(Driver):
    def generator(self, **settings):
        key = Secret.from_token(self.key)
        return self.kind(model=self.model, api_key=key, **self.address(), **settings)

    def ask(self, prompt, **settings):
        generator = self.generator(**settings)
        return generator.run([ChatMessage.from_user(prompt)])["replies"][0].text

    def text(self, prompt):
        return self.ask(prompt)

    def stream(self, prompt):
        pieces = []
        self.ask(prompt, streaming_callback=lambda chunk: pieces.append(chunk.content))
        return pieces

    def tools(self, prompt, lookup):
        tool = Tool(name="lookup", description=DESCRIPTION, parameters=PARAMETERS, function=lookup)
        agent = Agent(chat_generator=self.generator(), tools=[tool])
        return agent.run(messages=[ChatMessage.from_user(prompt)])["last_message"].text

    def json(self, prompt):
        said = self.ask(prompt, generation_kwargs=self.shape)
        return Recipe.model_validate_json(said)


class Chat(Haystack):
    kind, shape = OpenAIChatGenerator, {"response_format": Recipe}

    def address(self):
        return {"api_base_url": f"{self.gateway}/v1"}


class Responses(Chat):
    kind, shape = OpenAIResponsesChatGenerator, {"text_format": Recipe}


class Environment(Haystack):
    """Those that have no setting for the address of the API, unlike the SDKs that they use."""

    def address(self):
        os.environ[self.variable] = self.gateway
        return {}


class Messages(Environment):
    kind, variable = AnthropicChatGenerator, "ANTHROPIC_BASE_URL"
    schema = {"type": "json_schema", "schema": Recipe.model_json_schema() | {"additionalProperties": False}}
    shape = {"output_config": {"format": schema}}


class Native(Environment):
    kind, variable = GoogleGenAIChatGenerator, "GOOGLE_GEMINI_BASE_URL"
    shape = {"response_format": Recipe}


serve({"chat": Chat, "responses": Responses, "messages": Messages, "native": Native})
