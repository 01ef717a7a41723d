"""Gemini CLI: native."""

import json

import cells
from cli import Cli

SETTINGS = {
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False},
    "security": {"auth": {"selectedType": "gemini-api-key"}},
}


class Gemini(Cli):
    name, package, format = "gemini", "gemini", "native"

    def prepare(self, run):
        directory = run.home / ".gemini"
        directory.mkdir()
        (directory / "settings.json").write_text(json.dumps(SETTINGS))
        run.environment |= {
            "GOOGLE_GEMINI_BASE_URL": run.setup.gateway,
            "GEMINI_API_KEY": run.setup.key,
        }

    def command(self, run, prompt, *more):
        program = self.directory / "node_modules/.bin/gemini"
        return [program, "--yolo", "--skip-trust", "-m", run.model, *more, "-p", prompt]

    def stream_command(self, run, prompt):
        return self.command(run, prompt, "--output-format", "stream-json")

    def delta(self, line):
        event = json.loads(line) if line.startswith("{") else {}
        return event.get("content") if event.get("role") == "assistant" else None

    def calls(self, run, shell, file):
        yield "run_shell_command", {"command": shell, "description": "Makes a file"}
        yield "read_file", {"file_path": str(file)}

    # It has no way to ask for a shape.
    json = None
