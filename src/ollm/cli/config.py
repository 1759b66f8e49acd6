"""`ollm config`: show, check and change the settings (S8)."""

from __future__ import annotations

from pathlib import Path

import click

from ollm.cli.options import json_option, print_json, resolve_workspace, workspace_option
from ollm.cli.table import warn
from ollm.config.environment import home, process_environment
from ollm.domain.errors import Exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ollm.config.load import Loaded
    from ollm.config.validation import Mistake


@click.group()
def config() -> None:
    """Show, check and change the settings."""


@config.command()
@workspace_option
@json_option
def show(workspace: str | None, as_json: bool) -> None:
    """Print the settings in force.

    Each that is set says where it comes from; secrets are hidden.
    """
    from ollm.app import Process
    from ollm.config.show import as_yaml, shown

    loaded = Process(workspace=resolve_workspace(workspace)).loaded
    for problem in loaded.problems:
        if problem.fatal:
            warn(str(problem))
    document = shown(loaded.settings)
    if as_json:
        print_json(document)
    else:
        print(as_yaml(document, loaded.sources), end="")


@config.command()
def path() -> None:
    """Print where your file is, whether or not it exists yet."""
    print(home(process_environment()).config)


@config.command()
@workspace_option
@json_option
@click.pass_context
def check(context: click.Context, workspace: str | None, as_json: bool) -> None:
    """List everything that is wrong; exit 2 if there is something."""
    loaded = _as_if_trusted(resolve_workspace(workspace))
    problems = [*loaded.problems, *_rule_problems(loaded), *_foreign_problems(loaded)]
    if as_json:
        print_json({"ok": not problems, "problems": [_problem(problem) for problem in problems]})
    elif problems:
        print("\n".join(str(problem) for problem in problems))
    else:
        print("Nothing is wrong.")
    context.exit(Exit.USAGE if problems else Exit.DONE)


@config.command(name="set")
@click.argument("key")
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Set KEY to VALUE in your file.

    KEY is written as in loopDetection.maxTurns; the file's comments stay.
    """
    from ollm.config.change import change

    warn(f"{key} is set in {change(home(process_environment()), key, value)}")


@config.command()
def schema() -> None:
    """Print the JSON Schema of the file.

    For editors that check while you type.
    """
    from ollm.config.show import schema as build

    print_json(build())


def _as_if_trusted(workspace: Path) -> Loaded:
    """A workspace's file is checked whether or not it is in use."""
    from ollm.config.load import load

    environment = process_environment()
    return load(home(environment), environment, workspace=workspace, trusted=True)


def _rule_problems(loaded: Loaded) -> list[Mistake]:
    """What the policy cannot read of its rules, at the place of each."""
    from ollm.config.validation import Mistake
    from ollm.policy.rules import read_rules

    rules = read_rules(loaded.settings.policy.rules)
    return [
        Mistake(place=item.place, key="policy.rules", message=rule.problem)
        for rule, item in zip(rules, loaded.rule_places, strict=True)
        if rule.problem
    ]


def _foreign_problems(loaded: Loaded) -> list[Mistake]:
    """What cannot be read of hooks and MCP servers, at the place of their section."""
    from ollm.config.validation import Mistake
    from ollm.config.yaml_tree import Place
    from ollm.extensions.hook_settings import read_hooks
    from ollm.extensions.mcp.settings import read_servers

    settings = loaded.settings
    found = [*read_hooks(settings.hooks)[1], *read_servers(settings.mcp_servers)[1]]
    split = [text.partition(": ") for text in found]
    return [
        Mistake(place=loaded.sources.get(key.partition(".")[0], Place(file="config.yaml")), key=key, message=message)
        for key, _, message in split
    ]


def _problem(mistake: Mistake) -> dict[str, object]:
    place = mistake.place
    return {
        "file": place.file,
        "line": place.line or None,
        "column": place.column or None,
        "key": mistake.key,
        "message": mistake.message,
        "fatal": mistake.fatal,
    }
