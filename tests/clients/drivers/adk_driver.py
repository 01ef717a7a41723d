"""Google's Agent Development Kit: native."""

import asyncio
import os

from driver import Recipe, Driver, serve
from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.run_config import StreamingMode
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types


class Native(Driver):
    def __init__(self):
        super().__init__()
        # The only way to tell it of a key.
        os.environ["GOOGLE_API_KEY"] = self.key

    def events(self, prompt, mode=StreamingMode.NONE, **settings):
        """All that happens on one question, in order."""
        model = Gemini(model=self.model, base_url=self.gateway)
        runner = InMemoryRunner(LlmAgent(name="guide", model=model, **settings), app_name="guide")
        asked = types.Content(role="user", parts=[types.Part(text=prompt)])

        async def events():
            sessions = runner.session_service
            session = await sessions.create_session(app_name="guide", user_id="me")
            named = {"user_id": "me", "session_id": session.id, "new_message": asked}
            run = runner.run_async(run_config=RunConfig(streaming_mode=mode), **named)
            return [event async for event in run]

        return asyncio.run(events())

    def text(self, prompt):
        return said(self.events(prompt)[-1])

    def stream(self, prompt):
        for event in self.events(prompt, StreamingMode.SSE):
            if event.partial:
                yield said(event)

    def tools(self, prompt, find):
        def lookup(city: str) -> str:
            """What is known of a city"""
            return find(city)

        return said(self.events(prompt, tools=[lookup])[-1])

    def json(self, prompt):
        last = self.events(prompt, output_schema=Recipe)[-1]
        return Recipe.model_validate_json(said(last))


def said(event):
    return "".join(part.text or "" for part in event.content.parts)


serve({"native": Native})
