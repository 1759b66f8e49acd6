"""`ollm config`: show, check and change the settings (S8)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import click

from ollm.app.process import ProcessScope
from ollm.cli.completion import complete_setting, complete_value
from ollm.cli.options import print_json, print_result, shared_options, warn
from ollm.config.change import set_setting, unset_setting
from ollm.config.environment import copy_environment, find_home
from ollm.config.load import LoadedSettings, find_variable, load_settings
from ollm.config.show import build_schema as build
from ollm.config.show import find_value, redact_settings, render_yaml
from ollm.config.validation import Mistake
from ollm.config.yaml_tree import SourcePosition
from ollm.domain.errors import ExitCode
from ollm.extensions.hook_settings import read_hooks
from ollm.extensions.mcp.settings import read_servers
from ollm.policy.rules import read_rules
from ollm.services.diagnostics.servers import describe_mistakes
from ollm.services.environment_sanitization import EnvironmentSanitizationService


@click.group()
def config() -> None:
    """Show, check and change settings."""


@config.command()
@click.option("--set", "only_set", is_flag=True, help="Print only those that are set.")
@shared_options("process", "json")
def show(only_set: bool, process: ProcessScope, as_json: bool) -> None:
    """Print the effective settings.

    Each that is set says where it comes from; secrets are hidden.
    """
    loaded = process.loaded_settings
    warn(*(str(problem) for problem in loaded.problems if problem.fatal))
    document = redact_settings(loaded.settings)
    text = render_yaml(document, loaded.sources).rstrip("\n")
    if only_set:
        found = [f"{name}: {find_value(document, name)}  # {place}" for name, place in loaded.sources.items()]
        text = "\n".join([*found, "All others have their defaults: `ollm config show`."])
    print_result(document, text, as_json=as_json)


@config.command()
def path() -> None:
    """Print the path of your config file."""
    print(find_home(copy_environment()).config)


@config.command()
@shared_options("workspace", "json")
def check(workspace: Path, as_json: bool) -> int:
    """List all problems; exit code 2 if there are any."""
    environment = copy_environment()
    loaded = load_settings(find_home(environment), environment, workspace=workspace, trusted=True)
    problems = [*loaded.problems, *_find_problems(loaded)]
    process = ProcessScope(workspace=workspace)
    unmatched = [] if problems else asyncio.run(process.providers.list_unmatched_settings(loaded.settings))
    shown = [_serialize_problem(problem) for problem in problems]
    document = {"ok": not problems, "problems": shown, "unmatched": unmatched}
    print_result(document, "\n".join(map(str, [*problems, *unmatched])) or "Configuration OK.", as_json=as_json)
    return ExitCode.USAGE if problems else ExitCode.DONE


@config.command()
@click.argument("key", shell_complete=complete_setting)
@shared_options("process")
def get(key: str, process: ProcessScope) -> None:
    """Print the value of KEY.

    A secret is hidden; lists and sections are printed as JSON.
    """
    value = find_value(redact_settings(process.settings), key)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        print(value)
    else:
        print_json(value)


@config.command()
@click.argument("key", shell_complete=complete_setting)
def unset(key: str) -> None:
    """Remove KEY from your config file, so that its default applies."""
    warn(f"Removed {key} from {unset_setting(find_home(copy_environment()), key)}")


@config.command(name="set", context_settings={"ignore_unknown_options": True})  # The value may be negative.
@click.argument("key", shell_complete=complete_setting)
@click.argument("value", shell_complete=complete_value)
def set_(key: str, value: str) -> None:
    """Set KEY to VALUE in your config file.

    KEY is a path such as loopDetection.maxTurns; comments in the file are kept.
    """
    environment = copy_environment()
    warn(f"Set {key} in {set_setting(find_home(environment), key, value)}")
    if name := find_variable(environment, key):
        warn(f"{name} is set in the environment and counts instead; unset it for the new value to be used.")


@config.command()
def schema() -> None:
    """Print the JSON Schema of the config file.

    For editors that check while you type.
    """
    print_json(build())


def _find_problems(loaded: LoadedSettings) -> Iterator[Mistake]:
    """Find what loading does not check: rules, hooks, servers and variables."""
    settings = loaded.settings
    for rule, item in zip(read_rules(settings.policy.rules), loaded.rule_places, strict=True):
        if rule.problem:
            yield Mistake(place=item.place, key="policy.rules", message=rule.problem)
    found = [*read_hooks(settings.hooks)[1], *read_servers(settings.mcp_servers)[1]]
    found += describe_mistakes(settings.tools.diagnostics.languages)
    found += [f"environment: {warning}" for warning in EnvironmentSanitizationService(settings.environment).warnings]
    for key, _, message in (text.partition(": ") for text in found):
        place = loaded.sources.get(key.partition(".")[0], SourcePosition(file="config.yaml"))
        yield Mistake(place=place, key=key, message=message)


def _serialize_problem(mistake: Mistake) -> dict[str, object]:
    place = mistake.place
    return {
        "file": place.file,
        "line": place.line or None,
        "column": place.column or None,
        "key": mistake.key,
        "message": mistake.message,
        "fatal": mistake.fatal,
    }
