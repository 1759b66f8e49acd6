"""The keys of a person that a git command needs: to sign, or to reach a remote. No sandbox shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from ollm.system.paths import Boundary

_SIGNS_COMMITS = frozenset({"commit", "merge", "rebase", "cherry-pick", "revert", "am"})
_ASKS_REMOTES = frozenset({"push", "fetch", "pull", "clone", "ls-remote", "remote update", "submodule update"})
_SIGN = {"tag": r"-[af]*[su].*|--sign|--local-user(=.*)?"}
_SIGN_COMMIT = r"-[aenpqsv]*S.*|--gpg-sign(=.*)?"
_SSH = re.compile(r"(git\+)?ssh://|[^/:\s]+:(?!:|//)")  # `host:path` as well
_LOGIN = re.compile(r"https?://[^/@]+(/|$)")


def explain_needed_keys(words: Sequence[str], start: int, directory: Path, boundary: Boundary) -> str:
    """Return why a git command needs keys of the person, empty if it does not. `start` is its subcommand's place."""
    name, rest = words[start], list(words[start + 1 :])
    both = " ".join(words[start : start + 2])
    if name not in (*_SIGNS_COMMITS, "tag") and _ASKS_REMOTES.isdisjoint((name, both)):
        return ""
    settings = _read_settings(_keep_settings(words[1:start]), directory, boundary)
    if name in _SIGNS_COMMITS or name == "tag":
        return _explain_signing(name, rest, settings)
    return _explain_remote(name, rest, settings)


def _explain_signing(name: str, rest: Sequence[str], settings: Mapping[str, str]) -> str:
    without = "--no-sign" if name == "tag" else "--no-gpg-sign"
    if without in rest:
        return ""
    if any(re.fullmatch(_SIGN.get(name, _SIGN_COMMIT), word) for word in rest):
        return f"git {name} signs with your key, which the sandbox does not show"
    setting = "tag.gpgsign" if name == "tag" else "commit.gpgsign"
    creates = name != "tag" or any(re.match(r"-[af]*[am]|--(annotate|message|file)|-F", word) for word in rest)
    if creates and settings.get(setting, "").lower() in ("true", "yes", "on", "1"):
        return f"{setting} is set, so it signs with your key, which the sandbox does not show ({without} does not sign)"
    return ""


def _explain_remote(name: str, rest: Sequence[str], settings: Mapping[str, str]) -> str:
    urls = _find_urls(name, rest, settings)
    if any(map(_SSH.match, urls)):
        return f"git {name} uses ssh, and the sandbox does not show your keys"
    if name == "push" and any(map(_LOGIN.match, urls)):
        return "git push needs your login, which the sandbox does not show"
    return ""


def _find_urls(name: str, rest: Sequence[str], settings: Mapping[str, str]) -> list[str]:
    """The addresses it may reach: those in its words, else those of the remote that it names or takes by itself."""
    operands = [word for word in rest if not word.startswith("-")]
    if name == "clone":
        return operands
    remotes: dict[str, list[str]] = {}
    for key, value in settings.items():
        if found := re.fullmatch(r"remote\.(.+)\.(push)?url", key):
            remotes.setdefault(found[1], []).append(value)
    every = [url for urls in remotes.values() for url in urls]
    if name in ("remote", "submodule") or "--all" in rest:
        return every
    named = next((word for word in operands if word in remotes), None)
    if named is None and operands:
        return operands[:1]
    return remotes.get(named or "origin", every)


def _keep_settings(words: Sequence[str]) -> list[str]:
    """The options before the subcommand that say where it runs and what is set."""
    return [word for option, value in pairwise(words) if option in ("-c", "-C") for word in (option, value)]


def _read_settings(options: Sequence[str], directory: Path, boundary: Boundary) -> dict[str, str]:
    from ollm.system.sandbox.box import find_git_directories
    from ollm.system.sandbox.confined import read_git_settings

    home, workspace = str(boundary.places.user_home or Path.home()), str(boundary.workspace)
    readable = (workspace, *find_git_directories(workspace))
    return dict(read_git_settings(home, *options, directory=str(directory), readable=readable))
