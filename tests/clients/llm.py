"""llm, Simon Willison's command: chat."""

import json

import cells
from cli import Cli

MODELS = """\
- model_id: gateway
  model_name: {model}
  api_base: {gateway}/v1
  api_key_name: gateway
  supports_tools: true
  supports_schema: true
"""
FUNCTIONS = '''\
import subprocess

def run_shell(command: str) -> str:
    """Runs a command"""
    return subprocess.run(command, shell=True, capture_output=True, text=True).stdout

def read_file(path: str) -> str:
    """Reads a file"""
    return open(path).read()
'''


class Llm(Cli):
    name, package, rows = "llm", "llm", ("chat",)

    def prepare(self, run):
        directory = run.home / "llm"
        directory.mkdir()
        run.environment["LLM_USER_PATH"] = str(directory)
        models = MODELS.format(model=run.model, gateway=run.setup.gateway)
        (directory / "extra-openai-models.yaml").write_text(models)
        (directory / "keys.json").write_text(json.dumps({"gateway": run.setup.key}))

    def command(self, run, prompt, *more):
        return [self.directory / "bin/llm", "-m", "gateway", "--no-log", *more, prompt]

    def text(self, run):
        answer = f"The harbour is quiet, {cells.word()}."
        said = run.finish(self.command(run, f"mock:text={answer}", "--no-stream"))
        cells.demand(said.strip() == answer, f"said {said!r}")

    stream_command = command

    def stream(self, run):
        run.environment["PYTHONUNBUFFERED"] = "1"
        super().stream(run)

    def delta(self, piece):
        return piece

    def printed(self, stdout):
        return iter(lambda: stdout.read(1), "")

    def tool_command(self, run, prompt):
        functions = run.home / "functions.py"
        functions.write_text(FUNCTIONS)
        return self.command(run, prompt, "--functions", functions)

    def calls(self, run, shell, file):
        yield "run_shell", {"command": shell}
        yield "read_file", {"path": str(file)}

    def json(self, run):
        shape = ("--no-stream", "--schema", json.dumps(cells.SCHEMA))
        said = run.finish(self.command(run, "A recipe, please.", *shape))
        cells.check_shape(cells.read_json(said))
