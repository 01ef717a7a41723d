"""Continue's command: chat, messages and native."""

import json

from cli import Cli

# What Continue calls the formats.
PROVIDERS = {"chat": "openai", "messages": "anthropic", "native": "gemini"}


class Continue(Cli):
    name, package, rows = "continue", "continue", tuple(PROVIDERS)
    # It prints a text when it is whole, and has no way to ask for a shape.
    stream = json = None

    def prepare(self, run):
        model = {
            "name": "gateway",
            "provider": PROVIDERS[run.row],
            "model": run.model,
            "apiBase": f"{run.setup.gateway}/v1",
            "apiKey": run.setup.key,
        }
        # Its Gemini client looks at this instead of `apiBase`.
        run.environment["GOOGLE_GEMINI_BASE_URL"] = run.setup.gateway
        config = {"name": "gateway", "version": "1.0.0", "schema": "v1", "models": [model]}
        # JSON is YAML too.
        (run.home / "config.yaml").write_text(json.dumps(config))

    def command(self, run, prompt):
        program = self.directory / "node_modules/.bin/cn"
        return [program, "-p", prompt, "--auto", "--config", run.home / "config.yaml"]

    def calls(self, run, shell, file):
        yield "Bash", {"command": shell}
        yield "Read", {"filepath": str(file)}
