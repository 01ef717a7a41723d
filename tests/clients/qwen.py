"""Qwen Code: all four formats."""

import json

import cells
from cli import Cli

SETTINGS = {
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False},
}
# By the format: what Qwen Code calls it, the variables of address and key, and where it is.
KINDS = {
    "chat": ("openai", "OPENAI_BASE_URL", "OPENAI_API_KEY", "/v1"),
    "messages": ("anthropic", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", ""),
    "native": ("gemini", "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY", ""),
    "responses": ("openai-responses", "OPENAI_BASE_URL", "OPENAI_API_KEY", "/v1"),
}


class Qwen(Cli):
    name, package, rows = "qwen", "qwen", tuple(KINDS)
    def prepare(self, run):
        directory = run.home / ".qwen"
        directory.mkdir()
        (directory / "settings.json").write_text(json.dumps(SETTINGS))
        _, address, key, suffix = KINDS[run.row]
        run.environment |= {address: f"{run.setup.gateway}{suffix}", key: run.setup.key}

    def command(self, run, prompt, *more):
        program = self.directory / "node_modules/.bin/qwen"
        named = ("--auth-type", KINDS[run.row][0], "-m", run.model)
        return [program, "--yolo", *named, *more, "-p", prompt]

    def stream_command(self, run, prompt):
        partial = "--include-partial-messages"
        return self.command(run, prompt, "--output-format", "stream-json", partial)

    def delta(self, line):
        event = json.loads(line).get("event", {}) if line.startswith("{") else {}
        return event.get("delta", {}).get("text")

    def calls(self, run, shell, file):
        # It may miss the output of a command that ends at once.
        made = {"description": "Makes a file", "is_background": False}
        yield "run_shell_command", {"command": f"{shell}; sleep 2", **made}
        yield "read_file", {"file_path": str(file)}

    def json(self, run):
        shape = ("--json-schema", json.dumps(cells.SCHEMA), "--output-format", "json")
        events = cells.read_json(run.finish(self.command(run, "mock:tool=structured_output", *shape)))
        cells.check_shape(events[-1].get("structured_result"))
