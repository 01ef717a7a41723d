"""The OpenAI Agents SDK: chat and responses."""

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner
from agents import function_tool, set_tracing_disabled
from driver import DESCRIPTION, Recipe, Driver, serve
from openai import AsyncOpenAI

set_tracing_disabled(True)


class Agents(Driver):
    def agent(self, **settings):
        client = AsyncOpenAI(base_url=f"{self.gateway}/v1", api_key=self.key, max_retries=0)
        model = self.kind(model=self.model, openai_client=client)
        return Agent(name="guide", instructions="Be brief.", model=model, **settings)

    def run(self, prompt, **settings):
        return Runner.run_sync(self.agent(**settings), prompt).final_output

    def text(self, prompt):
        return self.run(prompt)

    def stream(self, prompt):
        async def pieces():
            run = Runner.run_streamed(self.agent(), prompt)
            return [text_of(event) async for event in run.stream_events()]

        return asyncio.run(pieces())

    def tools(self, prompt, lookup):
        def find(city: str) -> str:
            return lookup(city)

        tool = function_tool(find, name_override="lookup", description_override=DESCRIPTION)
        return self.run(prompt, tools=[tool])

    def json(self, prompt):
        return self.run(prompt, output_type=Recipe)


def text_of(event):
    if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
        return event.data.delta


class Chat(Agents):
    kind = OpenAIChatCompletionsModel


class Responses(Agents):
    kind = OpenAIResponsesModel


serve({"chat": Chat, "responses": Responses})
