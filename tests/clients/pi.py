"""pi: all four formats."""

import json

from cli import Cli

# By the format: what pi calls it, and where it is.
KINDS = {
    "chat": ("openai-completions", "/v1"),
    "messages": ("anthropic-messages", ""),
    "native": ("google-generative-ai", "/v1beta"),
    "responses": ("openai-responses", "/v1"),
}


class Pi(Cli):
    name, package, rows = "pi", "pi", tuple(KINDS)
    # It has no way to ask for a shape.
    json = None

    def prepare(self, run):
        directory = run.home / ".pi/agent"
        directory.mkdir(parents=True)
        api, suffix = KINDS[run.row]
        provider = {
            "baseUrl": f"{run.setup.gateway}{suffix}",
            "api": api,
            "apiKey": "GATEWAY_KEY",
            "models": [{"id": run.model}],
        }
        (directory / "models.json").write_text(json.dumps({"providers": {"gateway": provider}}))
        run.environment["GATEWAY_KEY"] = run.setup.key

    def command(self, run, prompt, *more):
        program = self.directory / "node_modules/.bin/pi"
        return [program, "--offline", "--model", f"gateway/{run.model}", *(more or ("-p",)), prompt]

    def stream_command(self, run, prompt):
        return self.command(run, prompt, "--mode", "json")

    def delta(self, line):
        event = json.loads(line).get("assistantMessageEvent", {}) if line.startswith("{") else {}
        return event.get("delta") if event.get("type") == "text_delta" else None

    def calls(self, run, shell, file):
        yield "bash", {"command": shell}
        yield "read", {"path": str(file)}
