"""Client libraries: each format of each is a program of ours that is told what to ask for, cell by cell."""

import contextlib
import json
import queue
import shutil
import subprocess
import threading

import cells
import cli
import isolation
from installed import HERE


class Library:
    """A library that a program in drivers/ drives."""

    recorded = cells.CELLS
    # What keeps some of them from asking the world for news.
    quiet = {
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_TRACING_ENABLED": "false",
        "HAYSTACK_TELEMETRY_ENABLED": "False",
        "LANGSMITH_TRACING": "false",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }

    def __init__(self, directory):
        self.directory = directory

    def command(self, row):
        return [self.directory / "bin/python", HERE / "drivers" / self.program, row]

    def cells(self, row, model, setup):
        with isolation.homes(setup.homes) as (home, work):
            told = {"GATEWAY": setup.gateway, "GATEWAY_KEY": setup.key, "GATEWAY_MODEL": model}
            environment = isolation.environment(home, setup.refusing) | self.quiet | told
            with DriverProcess(self.command(row), environment, work, setup.output) as process:
                for cell in cells.CELLS:
                    yield cell, lambda cell=cell: self.asked(cell, process, setup)

    def asked(self, cell, process, setup):
        return ASKED[cell](process)


class DriverProcess:
    """The program while it runs: a line of JSON to it, a line of JSON back."""

    def __init__(self, command, environment, work, output):
        self.output = output
        self.child = subprocess.Popen(
            [str(word) for word in command],
            cwd=work,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        self.lines = queue.SimpleQueue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.child.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        cli.stop(self.child)
        self.reader.join()
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()
        self.child.stdout.close()

    def ask(self, cell, prompt, secret=None):
        """The program's answer; nothing if its library cannot do that."""
        line = json.dumps({"cell": cell, "prompt": prompt, "secret": secret})
        self.note(line)
        try:
            self.child.stdin.write(f"{line}\n")
            self.child.stdin.flush()
            answer = self.lines.get(timeout=cli.LIMIT)
        except (OSError, queue.Empty) as error:
            # It may not be asked anything else now.
            cli.stop(self.child)
            raise cells.Wrong(f"no answer: {error!r}") from error
        cells.demand(answer is not None, "the program ended")
        self.note(answer)
        answer = json.loads(answer)
        cells.demand("error" not in answer, answer.get("error"))
        return None if answer.get("absent") else answer

    def note(self, line):
        self.output.write(f"{line.strip()}\n")
        self.output.flush()


def text(process):
    expected = f"The harbour is quiet, {cells.word()}."
    answer = process.ask("text", f"mock:text={expected}")
    if answer is None:
        return "n/a"
    cells.demand(answer["text"] == expected, f"said {answer['text']!r}")


def stream(process):
    expected = f"One after the other, {cells.word()} {cells.word()}."
    answer = process.ask("stream", f"mock:text={expected}")
    if answer is None:
        return growing(process)
    pieces = answer["pieces"]
    cells.demand("".join(pieces) == expected, f"the pieces are {pieces!r}")
    cells.demand(len(pieces) > 1, "all in one piece")


def growing(process):
    """For those that stream objects only. Native models say a call all at once, so it may be one piece."""
    answer = process.ask("growing", "A recipe, please.")
    if answer is None:
        return "n/a"
    cells.demand(answer["values"], "nothing came")
    cells.check_shape(answer["values"][-1])


def tools(process):
    city, secret = f"Port {cells.word()}", cells.word()
    asked = f"mock:tool=lookup mock:arguments={json.dumps({'city': city})}"
    answer = process.ask("tools", asked, secret)
    if answer is None:
        return "n/a"
    cells.demand(answer["asked"] == [city], f"the tool was asked {answer['asked']}")
    # Words that only the model has: what it says of the results that reached it.
    said = answer["text"]
    cells.demand(said.startswith("The tools answered:"), f"said {said!r}")
    cells.demand(f"{city} keeps {secret}" in said, f"said {said!r}")


def shape(process):
    answer = process.ask("json", "A recipe, please.")
    if answer is None:
        return "n/a"
    cells.check_shape(answer["value"])


ASKED = {"text": text, "stream": stream, "tools": tools, "json": shape}


class FinalAnswer(Library):
    """Agents that tell the model of results in texts, and have a tool for their last answer."""

    def asked(self, cell, process, setup):
        return final_answer(process, setup) if cell == "tools" else super().asked(cell, process, setup)


def final_answer(process, setup):
    city, secret, expected = f"Port {cells.word()}", cells.word(), cells.word()
    asked = f"mock:tool=lookup mock:arguments={json.dumps({'city': city})}"
    # The model reads the next call in what the tool gives.
    given = f"{secret} mock:tool=final_answer mock:arguments={json.dumps({'answer': expected})}"
    answer = process.ask("tools", asked, given)
    cells.demand(answer["asked"] == [city], f"the tool was asked {answer['asked']}")
    cells.demand(answer["text"] == expected, f"said {answer['text']!r}")
    proof = f"{city} keeps {secret}".encode()
    reached = any(proof in exchange["body"] for exchange in setup.received.exchanges)
    cells.demand(reached, "what the tool gave did not reach the model")


def library(name, package, rows, kind=Library):
    members = {"name": name, "package": package, "rows": rows}
    return type(name, (kind,), members | {"program": f"{name}_driver.py"})


class Modules(Library):
    """Modules are looked for beside the program that imports them, so the programs go where they are."""

    def command(self, row):
        shutil.copy(HERE / "drivers/driver.mjs", self.directory)
        return ["node", shutil.copy(HERE / "drivers" / self.program, self.directory), row]


def modules(name, rows, program, **members):
    members |= {"name": name, "package": name, "rows": rows, "program": program}
    return type(name, (Modules,), members)


EVERY = ("chat", "messages", "native", "responses")
LIBRARIES = (
    library("openai", "official", ("chat", "responses")),
    library("anthropic", "official", ("messages",)),
    library("google", "official", ("native",)),
    library("langchain", "langchain", EVERY),
    library("langgraph", "langchain", EVERY),
    library("pydantic_ai", "official", EVERY),
    library("instructor", "instructor", EVERY),
    library("litellm", "litellm", EVERY),
    modules("vercel", ("compatible", *EVERY), "vercel_driver.mjs", format="chat"),
    library("openai_agents", "openai_agents", ("chat", "responses")),
    modules("openai_agents_js", ("chat", "responses"), "openai_agents_driver.mjs"),
    modules("google_js", ("native",), "google_driver.mjs"),
    library("claude_agent", "claude_agent", ("messages",)),
    modules("claude_agent_js", ("messages",), "claude_agent_driver.mjs"),
    library("adk", "adk", ("native",)),
    library("agno", "agno", EVERY),
    library("strands", "strands", EVERY),
    library("autogen", "autogen", ("chat", "messages")),
    library("smolagents", "smolagents", ("chat",), FinalAnswer),
    library("llama_index", "llama_index", EVERY),
    library("haystack", "haystack", EVERY),
    library("semantic_kernel", "semantic_kernel", ("chat", "messages", "native")),
    library("crewai", "crewai", EVERY),
    library("dspy", "dspy", EVERY),
)
