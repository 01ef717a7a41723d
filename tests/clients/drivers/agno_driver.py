"""Agno: all four formats."""

import agno.agent
from agno.models.anthropic import Claude
from agno.models.google import Gemini
from agno.models.openai import OpenAIChat, OpenAIResponses
from agno.tools import tool
from driver import DESCRIPTION, Recipe, Driver, serve
from google.genai.types import HttpOptions


class Agno(Driver):
    def agent(self, **settings):
        model = self.kind(id=self.model, api_key=self.key, **self.address())
        return agno.agent.Agent(model=model, telemetry=False, **settings)

    def text(self, prompt):
        return self.agent().run(prompt).content

    def stream(self, prompt):
        for event in self.agent().run(prompt, stream=True):
            if event.event == "RunContent":
                yield event.content

    def tools(self, prompt, lookup):
        @tool(name="lookup", description=DESCRIPTION)
        def find(city: str) -> str:
            return lookup(city)

        return self.agent(tools=[find]).run(prompt).content

    def json(self, prompt):
        return self.agent(output_schema=Recipe).run(prompt).content


class Chat(Agno):
    kind = OpenAIChat

    def address(self):
        return {"base_url": f"{self.gateway}/v1"}


class Responses(Chat):
    kind = OpenAIResponses


class Messages(Agno):
    kind = Claude

    def address(self):
        return {"client_params": {"base_url": self.gateway}}


class Native(Agno):
    kind = Gemini

    def address(self):
        return {"client_params": {"http_options": HttpOptions(base_url=self.gateway)}}


serve({"chat": Chat, "responses": Responses, "messages": Messages, "native": Native})
