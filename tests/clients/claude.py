"""Claude Code: messages."""

import json
import platform

import cells
from cli import Cli

# The names that npm gives to machines.
MACHINES = {"x86_64": "x64", "aarch64": "arm64"}


class Claude(Cli):
    name, package, format = "claude", "claude", "messages"

    def prepare(self, run):
        models = ("", "_DEFAULT_OPUS", "_DEFAULT_SONNET", "_DEFAULT_HAIKU")
        run.environment |= {
            "ANTHROPIC_BASE_URL": run.setup.gateway,
            "ANTHROPIC_API_KEY": run.setup.key,
            **{f"ANTHROPIC{tier}_MODEL": run.model for tier in models},
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
        }

    def command(self, run, prompt, *more):
        machine = MACHINES[platform.machine()]
        program = self.directory / f"node_modules/@anthropic-ai/claude-code-linux-{machine}/claude"
        return [program, "-p", prompt, "--allowedTools", "Bash,Read", *more]

    def stream_command(self, run, prompt):
        events = ("--output-format", "stream-json", "--include-partial-messages", "--verbose")
        return self.command(run, prompt, *events)

    def delta(self, line):
        event = json.loads(line).get("event", {}) if line.startswith("{") else {}
        delta = event.get("delta", {})
        return delta.get("text") if delta.get("type") == "text_delta" else None

    def calls(self, run, shell, file):
        yield "Bash", {"command": shell, "description": "Makes a file"}
        yield "Read", {"file_path": str(file)}

    def json(self, run):
        shape = ("--json-schema", json.dumps(cells.SCHEMA), "--output-format", "json")
        command = self.command(run, "mock:tool=StructuredOutput", *shape)
        cells.check_shape(cells.read_json(run.finish(command)).get("structured_output"))
