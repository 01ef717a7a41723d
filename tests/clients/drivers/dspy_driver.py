"""DSPy: all four formats."""

import dspy
from driver import DESCRIPTION, Driver, Recipe, serve
from dspy.adapters.types.tool import ToolCallResults

# DSPy's own instructions follow each question. Another word ends what the model is told before them.
END = "mock:now"


class Answer(dspy.Signature):
    question: str = dspy.InputField()
    answer: str = dspy.OutputField()


class Agent(dspy.Signature):
    question: str | None = dspy.InputField()
    history: dspy.History = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    answer: str = dspy.OutputField()
    calls: dspy.ToolCalls = dspy.OutputField()


class Cook(dspy.Signature):
    question: str = dspy.InputField()
    recipe: Recipe = dspy.OutputField()


class Model(dspy.LM):
    # It takes models that it does not know to have neither tools nor schemas.
    supports_function_calling = supports_response_schema = True

    @property
    def supported_params(self):
        return super().supported_params | {"response_format"}


class PlainText(dspy.ChatAdapter):
    """Takes all that the model says as the answer."""

    def parse(self, signature, completion):
        return {"answer": completion}


class Dspy(Driver):
    kind = "chat"

    def __init__(self):
        super().__init__()
        self.lm = Model(
            f"{self.provider}/{self.model}",
            model_type=self.kind,
            api_base=f"{self.gateway}{self.suffix}",
            api_key=self.key,
            cache=False,
            num_retries=0,
        )
        dspy.configure(lm=self.lm)

    def text(self, prompt):
        return dspy.Predict(Answer)(question=answering(prompt)).answer

    def stream(self, prompt):
        listener = dspy.streaming.StreamListener(signature_field_name="answer")
        ask = dspy.streamify(dspy.Predict(Answer), stream_listeners=[listener], async_streaming=False)
        for piece in ask(question=answering(prompt)):
            if isinstance(piece, dspy.streaming.StreamResponse):
                yield piece.chunk

    def tools(self, prompt, find):
        lookup = dspy.Tool(find, name="lookup", desc=DESCRIPTION, args={"city": {"type": "string"}})
        history, prompt = dspy.History(messages=[]), f"{prompt} {END}"
        with dspy.context(adapter=PlainText(use_native_function_calling=True)):
            said = dspy.Predict(Agent)(question=prompt, history=history, tools=[lookup])
            values = [lookup(**call.args) for call in said.calls.tool_calls]
            results = ToolCallResults.from_tool_calls_and_values(said.calls, values)
            calls = said.calls.model_copy(update={"tool_call_results": results})
            history.messages.append({"question": prompt, "calls": calls})
            return dspy.Predict(Agent)(history=history, tools=[lookup]).answer

    def json(self, prompt):
        with dspy.context(adapter=dspy.JSONAdapter()):
            return dspy.Predict(Cook)(question=prompt).recipe


def answering(prompt):
    """The model gives its text in the way that DSPy reads it."""
    marked = prompt.replace("mock:text=", "mock:text=[[ ## answer ## ]]\n")
    return f"{marked}\n\n[[ ## completed ## ]] {END}"


class Chat(Dspy):
    provider, suffix = "openai", "/v1"


class Responses(Chat):
    kind = "responses"


class Messages(Dspy):
    provider, suffix = "anthropic", "/v1"


class Native(Dspy):
    provider, suffix = "gemini", "/v1beta"


serve({"chat": Chat, "responses": Responses, "messages": Messages, "native": Native})
