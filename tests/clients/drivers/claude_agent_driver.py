"""The Claude Agent SDK: messages. It runs the Claude Code that is inside of it."""

import asyncio

import claude_agent_sdk as sdk
from driver import DESCRIPTION, PARAMETERS, Recipe, Driver, serve


class Messages(Driver):
    def ask(self, prompt, **more):
        """All that it says of one question, in order."""
        models = ("", "_DEFAULT_OPUS", "_DEFAULT_SONNET", "_DEFAULT_HAIKU")
        told = {
            "ANTHROPIC_BASE_URL": self.gateway,
            "ANTHROPIC_API_KEY": self.key,
            **{f"ANTHROPIC{tier}_MODEL": self.model for tier in models},
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        options = sdk.ClaudeAgentOptions(env=told, tools=[], **more)

        async def messages():
            return [message async for message in sdk.query(prompt=prompt, options=options)]

        return asyncio.run(messages())

    def text(self, prompt):
        return self.ask(prompt)[-1].result

    def stream(self, prompt):
        for message in self.ask(prompt, include_partial_messages=True):
            delta = message.event.get("delta", {}) if isinstance(message, sdk.StreamEvent) else {}
            yield delta.get("text")

    def tools(self, prompt, lookup):
        @sdk.tool("lookup", DESCRIPTION, PARAMETERS)
        async def find(arguments):
            return {"content": [{"type": "text", "text": lookup(**arguments)}]}

        name = "mcp__guide__lookup"
        servers = {"guide": sdk.create_sdk_mcp_server("guide", tools=[find])}
        prompt = prompt.replace("mock:tool=lookup", f"mock:tool={name}")
        return self.ask(prompt, mcp_servers=servers, allowed_tools=[name])[-1].result

    def json(self, _):
        shape = {"type": "json_schema", "schema": Recipe.model_json_schema()}
        # A tool of its own takes the object.
        return self.ask("mock:tool=StructuredOutput", output_format=shape)[-1].structured_output


serve({"messages": Messages})
