"""Codex: responses."""

import json

import cells
from cli import MANY, Cli

CONFIG = """\
model = "{model}"
model_provider = "gateway"
check_for_update_on_startup = false

[model_providers.gateway]
name = "gateway"
base_url = "{gateway}/v1"
env_key = "GATEWAY_KEY"
wire_api = "responses"

[analytics]
enabled = false

[features]
plugins = false
apps = false
"""


class Codex(Cli):
    name, package, format = "codex", "codex", "responses"

    def prepare(self, run):
        directory = run.home / ".codex"
        directory.mkdir()
        config = CONFIG.format(model=run.model, gateway=run.setup.gateway)
        (directory / "config.toml").write_text(config)
        run.environment["GATEWAY_KEY"] = run.setup.key

    def command(self, run, prompt, *more):
        freely = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        program = self.directory / "node_modules/.bin/codex"
        return [program, "exec", *freely, *more, prompt]

    def stream(self, run):
        """It prints whole items only; that they are made of many pieces is all that can be seen."""
        words = " ".join(cells.word() for _ in range(MANY))
        lines = run.finish(self.command(run, f"mock:text={words}", "--json")).splitlines()
        events = [cells.read_json(line) for line in lines]
        items = [event["item"] for event in events if event["type"] == "item.completed"]
        said = [item["text"] for item in items if item["type"] == "agent_message"]
        cells.demand(said == [words], f"said {said!r}"[:300])
        cells.demand(events[-1]["type"] == "turn.completed", f"ends with {events[-1]}")
        cells.demand(events[-1]["usage"]["output_tokens"] == MANY, f"counts {events[-1]['usage']}")

    def tools(self, run):
        super().tools(run)
        nobody = "01234567-89ab-7cde-8f01-23456789abcd"
        asked = f'mock:tool=multi_agent_v1__close_agent mock:arguments={{"target": "{nobody}"}}'
        said = self.said(run.finish(self.command(run, asked)))
        # Where the namespace is lost it says "unsupported call".
        cells.demand(f"agent with id {nobody} not found" in said, f"said {said!r}")

    def calls(self, run, shell, file):
        yield "exec_command", {"cmd": shell}
        yield "exec_command", {"cmd": f"cat {file}"}

    def json(self, run):
        shape = run.home / "shape.json"
        shape.write_text(json.dumps(cells.SCHEMA))
        command = self.command(run, "A recipe, please.", "--output-schema", shape)
        cells.check_shape(cells.read_json(self.said(run.finish(command))))
