"""How each agent is started on a task: ollm itself, and pi, opencode, codex or any command where they are installed."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEY = "not-needed"


@dataclass(frozen=True)
class Cell:
    """One cell of the results: who works, with which model and window, from which form of calls."""

    agent: str
    base_url: str
    model: str
    window: int
    form: str
    seed: int


@dataclass(frozen=True)
class Start:
    """A command, what its environment holds besides, and how its output becomes answer and steps."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    read_output: Callable[[str], tuple[str, int]]


def read_plain_output(output: str) -> tuple[str, int]:
    return output, 0


def read_ollm_output(output: str) -> tuple[str, int]:
    """The last answer and how many requests it took, from `-o json`."""
    found: dict[str, Any] = json.loads(output)
    return found.get("text", ""), len(found.get("toolCalls", ())) + 1


def start_ollm(cell: Cell, asked: str, home: Path) -> Start:
    home.mkdir(parents=True, exist_ok=True)
    environment = {
        "OLLM_HOME": str(home),
        "OLLM_BASE_URL": cell.base_url,
        "OLLM_MODEL": cell.model,
        "OLLM_CONTEXT_WINDOW": str(cell.window),
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
    }
    if cell.form not in ("first", "probed"):
        environment["OLLM_CALL_FORM"] = cell.form
    command = (sys.executable, "-m", "ollm", "-p", asked, "-o", "json", "--yes")
    return Start(command, environment, read_ollm_output)


def start_pi(cell: Cell, asked: str, home: Path) -> Start:
    model = {"id": cell.model, "contextWindow": cell.window, "maxTokens": cell.window // 4}
    provider = {"baseUrl": f"{cell.base_url}/v1", "api": "openai-completions", "apiKey": KEY, "models": [model]}
    write_json(home / "models.json", {"providers": {"local": provider}})
    command = ("pi", "-p", "--no-session", "--provider", "local", "--model", cell.model, asked)
    return Start(command, {"PI_CODING_AGENT_DIR": str(home)}, read_plain_output)


def start_opencode(cell: Cell, asked: str, home: Path) -> Start:
    limit = {"context": cell.window, "output": cell.window // 4}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{cell.base_url}/v1", "apiKey": KEY},
        "models": {cell.model: {"limit": limit}},
    }
    settings = {"provider": {"local": provider}, "permission": {"edit": "allow", "bash": "allow"}}
    write_json(home / "opencode.json", settings)
    environment = {"OPENCODE_CONFIG": str(home / "opencode.json"), "XDG_DATA_HOME": str(home)}
    return Start(("opencode", "run", "--auto", "-m", f"local/{cell.model}", asked), environment, read_plain_output)


def start_codex(cell: Cell, asked: str, home: Path) -> Start:
    home.mkdir(parents=True, exist_ok=True)
    settings = (
        f'model = "{cell.model}"\nmodel_provider = "local"\nmodel_context_window = {cell.window}\n\n'
        f'[model_providers.local]\nname = "local"\nbase_url = "{cell.base_url}/v1"\nwire_api = "responses"\n'
    )
    (home / "config.toml").write_text(settings, encoding="utf-8")
    command = ("codex", "exec", "--skip-git-repo-check", "--sandbox", "workspace-write", asked)
    return Start(command, {"CODEX_HOME": str(home)}, read_plain_output)


def start_command(cell: Cell, asked: str, home: Path) -> Start:
    """Any other agent: the words after `command:`, then what is asked. It finds the server in its environment."""
    environment = {"BASE": cell.base_url, "MODEL": cell.model, "WINDOW": str(cell.window), "SEED": str(cell.seed)}
    words = shlex.split(cell.agent.removeprefix("command:"))
    return Start((*words, asked), {**environment, "HOME": str(home)}, read_plain_output)


STARTS = {"ollm": start_ollm, "pi": start_pi, "opencode": start_opencode, "codex": start_codex}


def start_agent(cell: Cell, asked: str, home: Path) -> Start:
    return STARTS.get(cell.agent, start_command)(cell, asked, home)


def is_installed(agent: str) -> bool:
    if agent == "ollm" or agent.startswith("command:"):
        return True
    return agent in STARTS and shutil.which(agent) is not None


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
