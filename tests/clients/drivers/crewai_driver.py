"""CrewAI: all four formats."""

import crewai
from crewai.events import LLMStreamChunkEvent, crewai_event_bus
from crewai.tools import tool
from driver import Recipe, Driver, serve


class CrewAi(Driver):
    settings = {}

    def llm(self, **settings):
        named = {"model": self.model, "provider": self.provider, "api_key": self.key}
        return crewai.LLM(**named, **self.address(), **self.settings, **settings)

    def agent(self, *tools):
        named = {"role": "Guide", "goal": "Guide well", "backstory": "You know every city."}
        return crewai.Agent(llm=self.llm(), tools=list(tools), **named)

    def text(self, prompt):
        return self.llm().call(prompt)

    def stream(self, prompt):
        pieces = []
        with crewai_event_bus.scoped_handlers():

            @crewai_event_bus.on(LLMStreamChunkEvent)
            def keep(_, event):
                pieces.append(event.chunk)

            self.llm(stream=True).call(prompt)
            crewai_event_bus.flush()
        return pieces

    def tools(self, prompt, find):
        @tool("lookup")
        def lookup(city: str) -> str:
            """What is known of a city"""
            return find(city)

        return self.agent(lookup).kickoff(prompt).raw

    def json(self, prompt):
        return self.llm().call(prompt, response_model=Recipe)


class Chat(CrewAi):
    provider = "openai"

    def address(self):
        return {"base_url": f"{self.gateway}/v1"}


class Responses(Chat):
    settings = {"api": "responses"}


class Messages(CrewAi):
    provider = "anthropic"

    def address(self):
        return {"base_url": self.gateway}


class Native(CrewAi):
    provider = "gemini"

    def address(self):
        return {"client_params": {"http_options": {"base_url": self.gateway}}}

    def llm(self, **settings):
        llm = super().llm(**settings)
        # It knows only models called gemini to have tools, and describes them to others in texts.
        llm.supports_tools = True
        return llm


serve({"chat": Chat, "responses": Responses, "messages": Messages, "native": Native})
