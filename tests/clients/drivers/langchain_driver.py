"""LangChain: all four formats."""

from driver import DESCRIPTION, Recipe, Driver, serve
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI


class LangChain(Driver):
    def __init__(self):
        super().__init__()
        self.chat = self.make(model=self.model, api_key=self.key, max_retries=0)

    def text(self, prompt):
        return str(self.chat.invoke(prompt).text)

    def stream(self, prompt):
        for chunk in self.chat.stream(prompt):
            yield str(chunk.text)

    def tools(self, prompt, lookup):
        def find(city: str) -> str:
            return lookup(city)

        tool = StructuredTool.from_function(find, name="lookup", description=DESCRIPTION)
        chat, messages = self.chat.bind_tools([tool]), [HumanMessage(prompt)]
        reply = chat.invoke(messages)
        messages.append(reply)
        for call in reply.tool_calls:
            messages.append(ToolMessage(tool.invoke(call["args"]), tool_call_id=call["id"]))
        return str(chat.invoke(messages).text)

    def json(self, prompt):
        return self.chat.with_structured_output(Recipe).invoke(prompt)


class Chat(LangChain):
    def make(self, **settings):
        return ChatOpenAI(base_url=f"{self.gateway}/v1", use_responses_api=False, **settings)


class Responses(LangChain):
    def make(self, **settings):
        return ChatOpenAI(base_url=f"{self.gateway}/v1", use_responses_api=True, **settings)


class Messages(LangChain):
    def make(self, **settings):
        return ChatAnthropic(base_url=self.gateway, **settings)


class Native(LangChain):
    def make(self, **settings):
        return ChatGoogleGenerativeAI(base_url=self.gateway, **settings)


serve({"chat": Chat, "responses": Responses, "messages": Messages, "native": Native})
