"""LiteLLM as a client: all four formats."""

import json

import litellm
from driver import DESCRIPTION, PARAMETERS, Recipe, Driver, serve


class Chat(Driver):
    prefix, suffix = "openai/", "/v1"

    def complete(self, messages, **more):
        return litellm.completion(
            model=f"{self.prefix}{self.model}",
            messages=messages,
            api_base=f"{self.gateway}{self.suffix}",
            api_key=self.key,
            **more,
        )

    def text(self, prompt):
        return self.complete([user(prompt)]).choices[0].message.content

    def stream(self, prompt):
        for chunk in self.complete([user(prompt)], stream=True):
            yield chunk.choices[0].delta.content

    def tools(self, prompt, lookup):
        function = {"name": "lookup", "description": DESCRIPTION, "parameters": PARAMETERS}
        tools, messages = [{"type": "function", "function": function}], [user(prompt)]
        message = self.complete(messages, tools=tools).choices[0].message
        messages.append(message)
        for call in message.tool_calls:
            found = lookup(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
        return self.complete(messages, tools=tools).choices[0].message.content

    def json(self, prompt):
        reply = self.complete([user(prompt)], response_format=Recipe)
        return json.loads(reply.choices[0].message.content)


class Responses(Chat):
    prefix = "openai/responses/"


class Messages(Chat):
    prefix, suffix = "anthropic/", ""


class Native(Chat):
    prefix, suffix = "gemini/", "/v1beta"

    def __init__(self):
        super().__init__()
        # Of a model that it does not know it thinks that schemas must be part of the prompt.
        known = {"litellm_provider": "gemini", "mode": "chat", "supports_response_schema": True}
        litellm.register_model({f"{self.prefix}{self.model}": known})


def user(text):
    return {"role": "user", "content": text}


serve({"chat": Chat, "responses": Responses, "messages": Messages, "native": Native})
