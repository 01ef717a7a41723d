"""Instructor: objects in all four formats, whole and growing piece by piece."""

import anthropic
import instructor
import openai
from driver import Recipe, Driver, serve
from google import genai


class Instructor(Driver):
    settings = {}

    def ask(self, method, prompt):
        messages = [{"role": "user", "content": prompt}]
        named = {"model": self.model, "messages": messages, "max_retries": 0}
        return getattr(self.client(), method)(response_model=Recipe, **named, **self.settings)

    def json(self, prompt):
        return self.ask("create", prompt)

    def growing(self, prompt):
        return self.ask("create_partial", prompt)


class Chat(Instructor):
    mode = instructor.Mode.TOOLS

    def client(self):
        client = openai.OpenAI(base_url=f"{self.gateway}/v1", api_key=self.key, max_retries=0)
        return instructor.from_openai(client, mode=self.mode)


class Responses(Chat):
    mode = instructor.Mode.RESPONSES_TOOLS


class Messages(Instructor):
    settings = {"max_tokens": 1000}

    def client(self):
        client = anthropic.Anthropic(base_url=self.gateway, api_key=self.key, max_retries=0)
        return instructor.from_anthropic(client, mode=instructor.Mode.TOOLS)


class Native(Instructor):
    def client(self):
        options = genai.types.HttpOptions(base_url=self.gateway)
        client = genai.Client(api_key=self.key, http_options=options)
        return instructor.from_genai(client, mode=instructor.Mode.TOOLS)


serve({"chat": Chat, "responses": Responses, "messages": Messages, "native": Native})
