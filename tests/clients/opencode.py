"""opencode: all four formats."""

import json
import platform

from claude import MACHINES
from cli import Cli

# By the format: the package of the AI SDK for it, and where it is.
KINDS = {
    "chat": ("@ai-sdk/openai-compatible", "/v1"),
    "messages": ("@ai-sdk/anthropic", "/v1"),
    "native": ("@ai-sdk/google", "/v1beta"),
    "responses": ("@ai-sdk/openai", "/v1"),
}
QUIET = ("AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "MODELS_FETCH", "SHARE")


class Opencode(Cli):
    name, package, rows = "opencode", "opencode", tuple(KINDS)
    # It prints a text when it is whole, and has no way to ask for a shape.
    stream = json = None

    def prepare(self, run):
        directory = run.home / ".config/opencode"
        directory.mkdir(parents=True)
        package, suffix = KINDS[run.row]
        model = f"gateway/{run.model}"
        provider = {
            "npm": package,
            "options": {"baseURL": f"{run.setup.gateway}{suffix}", "apiKey": run.setup.key},
            "models": {run.model: {}},
        }
        settings = {
            "model": model,
            "small_model": model,
            "provider": {"gateway": provider},
            "permission": "allow",
            # Else each step begins and ends with a copy of the whole repository around its directory.
            "snapshot": False,
        }
        (directory / "opencode.json").write_text(json.dumps(settings))
        run.environment |= {f"OPENCODE_DISABLE_{name}": "1" for name in QUIET}

    def command(self, run, prompt):
        machine = MACHINES[platform.machine()]
        program = self.directory / f"node_modules/opencode-linux-{machine}/bin/opencode"
        # It puts an argument that has a space in it into quotes.
        return [program, "run", "--print-logs", "--format", "json", *prompt.split(" ")]

    def said(self, output):
        events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        return "".join(event["part"]["text"] for event in events if event["type"] == "text")

    def calls(self, run, shell, file):
        yield "bash", {"command": shell, "description": "Makes a file"}
        yield "read", {"filePath": str(file)}
