"""GitHub Copilot CLI with a provider of one's own: chat, messages and responses, without a login."""

import json
import platform

from claude import MACHINES
from cli import Cli

# By the format: what tells Copilot of it, and where it is.
KINDS = {
    "chat": ({"TYPE": "openai", "WIRE_API": "completions"}, "/v1"),
    "messages": ({"TYPE": "anthropic"}, ""),
    "responses": ({"TYPE": "openai", "WIRE_API": "responses"}, "/v1"),
}


class Copilot(Cli):
    name, package, rows = "copilot", "copilot", tuple(KINDS)
    # It has no way to ask for a shape.
    json = None

    def prepare(self, run):
        kind, suffix = KINDS[run.row]
        provider = kind | {"BASE_URL": f"{run.setup.gateway}{suffix}", "API_KEY": run.setup.key}
        run.environment |= {f"COPILOT_PROVIDER_{name}": value for name, value in provider.items()}
        run.environment |= {"COPILOT_MODEL": run.model, "COPILOT_OFFLINE": "true"}

    def command(self, run, prompt, *more):
        machine = MACHINES[platform.machine()]
        program = self.directory / f"node_modules/@github/copilot-linux-{machine}/copilot"
        return [program, "-p", prompt, "--allow-all-tools", "--allow-all-paths", "-s", *more]

    def stream_command(self, run, prompt):
        return self.command(run, prompt, "--output-format", "json", "--stream", "on")

    def delta(self, line):
        event = json.loads(line) if line.startswith("{") else {}
        return event["data"]["deltaContent"] if event.get("type") == "assistant.message_delta" else None

    def calls(self, run, shell, file):
        yield "bash", {"command": shell, "description": "Makes a file"}
        yield "view", {"path": str(file)}
