"""LlamaIndex: all four formats."""

import asyncio

from driver import DESCRIPTION, Recipe, Driver, serve
from google.genai.types import HttpOptions
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import LLMMetadata
from llama_index.core.program import FunctionCallingProgram
from llama_index.core.tools import FunctionTool
from llama_index.llms.anthropic import Anthropic
from llama_index.llms.google_genai import GoogleGenAI
from llama_index.llms.openai_like import OpenAILike, OpenAILikeResponses


class LlamaIndex(Driver):
    def llm(self):
        return self.make(model=self.model, api_key=self.key, max_retries=0)

    def text(self, prompt):
        return str(self.llm().complete(prompt))

    def stream(self, prompt):
        for piece in self.llm().stream_complete(prompt):
            yield piece.delta

    def tools(self, prompt, lookup):
        def find(city: str) -> str:
            return lookup(city)

        tool = FunctionTool.from_defaults(find, name="lookup", description=DESCRIPTION)

        async def run():
            return await FunctionAgent(tools=[tool], llm=self.llm()).run(prompt)

        return str(asyncio.run(run()))

    def json(self, prompt):
        return self.llm().as_structured_llm(Recipe).complete(prompt).raw


class Chat(LlamaIndex):
    def make(self, **settings):
        able = {"is_chat_model": True, "is_function_calling_model": True}
        return OpenAILike(api_base=f"{self.gateway}/v1", **able, **settings)


class Responses(LlamaIndex):
    def make(self, **settings):
        able = {"is_function_calling_model": True}
        return OpenAILikeResponses(api_base=f"{self.gateway}/v1", **able, **settings)


class AnyModel(Anthropic):
    """It knows models by their names alone, and there is no setting for the others."""

    @property
    def metadata(self):
        able = {"is_chat_model": True, "is_function_calling_model": True}
        return LLMMetadata(model_name=self.model, context_window=100_000, **able)


class Messages(LlamaIndex):
    def make(self, **settings):
        return AnyModel(base_url=self.gateway, **settings)

    def json(self, prompt):
        # Unless it is told the choice, it sends none and leaves the call to the model.
        asked = {"prompt_template_str": prompt, "tool_choice": {"type": "any"}}
        return FunctionCallingProgram.from_defaults(Recipe, llm=self.llm(), **asked)()


class Native(LlamaIndex):
    def make(self, **settings):
        return GoogleGenAI(http_options=HttpOptions(base_url=self.gateway), **settings)


serve({"chat": Chat, "responses": Responses, "messages": Messages, "native": Native})
