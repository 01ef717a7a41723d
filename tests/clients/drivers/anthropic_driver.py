"""The official Anthropic SDK: messages."""

import anthropic
from driver import DESCRIPTION, PARAMETERS, Recipe, Driver, serve


class Messages(Driver):
    def __init__(self):
        super().__init__()
        self.client = anthropic.Anthropic(base_url=self.gateway, api_key=self.key, max_retries=0)
        self.settings = {"model": self.model, "max_tokens": 1000}

    def create(self, messages, **more):
        return self.client.messages.create(messages=messages, **self.settings, **more)

    def text(self, prompt):
        return said(self.create([user(prompt)]))

    def stream(self, prompt):
        with self.client.messages.stream(messages=[user(prompt)], **self.settings) as stream:
            yield from stream.text_stream

    def tools(self, prompt, lookup):
        tool = {"name": "lookup", "description": DESCRIPTION, "input_schema": PARAMETERS}
        reply = self.create([user(prompt)], tools=[tool])
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": lookup(**block.input)}
            for block in reply.content
            if block.type == "tool_use"
        ]
        turns = [user(prompt), {"role": "assistant", "content": reply.content}, user(results)]
        return said(self.create(turns, tools=[tool]))

    def json(self, prompt):
        parse = self.client.messages.parse
        reply = parse(messages=[user(prompt)], output_format=Recipe, **self.settings)
        return reply.parsed_output


def user(content):
    return {"role": "user", "content": content}


def said(reply):
    return "".join(block.text for block in reply.content if block.type == "text")


serve({"messages": Messages})
