"""LangGraph: a graph of a model and its tools, all four formats."""

from driver import DESCRIPTION, Driver, serve
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessageChunk
from langchain_core.tools import StructuredTool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


class LangGraph(Driver):
    def graph(self, *tools):
        chat = self.make(model=self.model, api_key=self.key, max_retries=0).bind_tools(tools)
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda state: {"messages": [chat.invoke(state["messages"])]})
        graph.add_edge(START, "model")
        if tools:
            graph.add_node("tools", ToolNode(list(tools)))
            graph.add_conditional_edges("model", tools_condition)
            graph.add_edge("tools", "model")
        return graph.compile()

    def text(self, prompt):
        return str(self.graph().invoke(asking(prompt))["messages"][-1].text)

    def stream(self, prompt):
        for message, _ in self.graph().stream(asking(prompt), stream_mode="messages"):
            if isinstance(message, AIMessageChunk):
                yield str(message.text)

    def tools(self, prompt, lookup):
        def find(city: str) -> str:
            return lookup(city)

        tool = StructuredTool.from_function(find, name="lookup", description=DESCRIPTION)
        return str(self.graph(tool).invoke(asking(prompt))["messages"][-1].text)


def asking(prompt):
    return {"messages": [{"role": "user", "content": prompt}]}


class Chat(LangGraph):
    def make(self, **settings):
        return ChatOpenAI(base_url=f"{self.gateway}/v1", use_responses_api=False, **settings)


class Responses(LangGraph):
    def make(self, **settings):
        return ChatOpenAI(base_url=f"{self.gateway}/v1", use_responses_api=True, **settings)


class Messages(LangGraph):
    def make(self, **settings):
        return ChatAnthropic(base_url=self.gateway, **settings)


class Native(LangGraph):
    def make(self, **settings):
        return ChatGoogleGenerativeAI(base_url=self.gateway, **settings)


serve({"chat": Chat, "responses": Responses, "messages": Messages, "native": Native})
