"""The official OpenAI SDK: chat and responses."""

import json

import openai
from driver import DESCRIPTION, PARAMETERS, Recipe, Driver, serve


class Chat(Driver):
    def __init__(self):
        super().__init__()
        self.client = openai.OpenAI(base_url=f"{self.gateway}/v1", api_key=self.key, max_retries=0)

    def create(self, messages, **more):
        return self.client.chat.completions.create(model=self.model, messages=messages, **more)

    def text(self, prompt):
        return self.create([user(prompt)]).choices[0].message.content

    def stream(self, prompt):
        for chunk in self.create([user(prompt)], stream=True):
            yield from (choice.delta.content for choice in chunk.choices)

    def tools(self, prompt, lookup):
        function = {"name": "lookup", "description": DESCRIPTION, "parameters": PARAMETERS}
        tools, messages = [{"type": "function", "function": function}], [user(prompt)]
        message = self.create(messages, tools=tools).choices[0].message
        messages.append(message)
        for call in message.tool_calls:
            found = lookup(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
        return self.create(messages, tools=tools).choices[0].message.content

    def json(self, prompt):
        parse = self.client.chat.completions.parse
        reply = parse(model=self.model, messages=[user(prompt)], response_format=Recipe)
        return reply.choices[0].message.parsed


class Responses(Chat):
    def create(self, input, **more):
        return self.client.responses.create(model=self.model, input=input, **more)

    def text(self, prompt):
        return self.create(prompt).output_text

    def stream(self, prompt):
        for event in self.create(prompt, stream=True):
            if event.type == "response.output_text.delta":
                yield event.delta

    def tools(self, prompt, lookup):
        tool = {"type": "function", "name": "lookup", "description": DESCRIPTION, "strict": True}
        tools, items = [tool | {"parameters": PARAMETERS}], [user(prompt)]
        reply = self.create(items, tools=tools)
        items += reply.output
        for call in reply.output:
            if call.type == "function_call":
                found = lookup(**json.loads(call.arguments))
                answer = {"type": "function_call_output", "call_id": call.call_id, "output": found}
                items.append(answer)
        return self.create(items, tools=tools).output_text

    def json(self, prompt):
        parse = self.client.responses.parse
        return parse(model=self.model, input=prompt, text_format=Recipe).output_parsed


def user(text):
    return {"role": "user", "content": text}


serve({"chat": Chat, "responses": Responses})
