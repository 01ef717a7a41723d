"""aider: chat and messages. It has no tools: what the model says is an edit, and aider makes it."""

import cells
from cli import Cli

# By the format: litellm's name of it, and what tells litellm where it is.
KINDS = {
    "chat": ("openai", "OPENAI_API_BASE", "/v1", "OPENAI_API_KEY"),
    "messages": ("anthropic", "ANTHROPIC_API_BASE", "", "ANTHROPIC_API_KEY"),
}
QUIET = (
    "--yes-always --no-git --no-check-update --analytics-disable --no-show-model-warnings "
    "--no-show-release-notes --no-pretty --no-detect-urls --no-suggest-shell-commands --map-tokens 0"
).split()


class Aider(Cli):
    name, package, rows = "aider", "aider", tuple(KINDS)
    json = None

    def prepare(self, run):
        _, address, suffix, key = KINDS[run.row]
        run.environment |= {address: f"{run.setup.gateway}{suffix}", key: run.setup.key}
        run.environment["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

    def command(self, run, prompt, *more):
        program, model = self.directory / "bin/aider", f"{KINDS[run.row][0]}/{run.model}"
        # Otherwise it leaves them at the root of the repository around it.
        history = [f"--{kind}-history-file={run.work / kind}" for kind in ("chat", "input")]
        return [program, "--model", model, *QUIET, *history, *more, "--message", prompt]

    def text(self, run):
        answer = f"The harbour is quiet, {cells.word()}."
        asking = ("--no-stream", "--edit-format", "ask")
        said = run.finish(self.command(run, f"mock:text={answer}", *asking))
        cells.demand(answer in said.splitlines(), f"said {said!r}")

    def stream(self, run):
        words = " ".join(cells.word() for _ in range(20))
        said = run.finish(self.command(run, f"mock:text={words}", "--stream", "--edit-format", "ask"))
        cells.demand(words in said, f"said {said!r}")

    def tools(self, run):
        edited = cells.word()
        file = run.work / "notes.txt"
        file.write_text("nothing yet\n")
        edit = f"mock:text=notes.txt\n```\n{edited}\n```"
        run.finish(self.command(run, edit, "--edit-format", "whole", "notes.txt"))
        cells.demand(file.read_text() == f"{edited}\n", f"the file holds {file.read_text()!r}")
