"""Options of `chat`, as data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.errors import UsageError
from ollm.domain.struct import Data
from ollm.runtime.base import ConversationOptions

TAKEOVER_MESSAGE = "Another process took over this workspace. Your session is saved and can be resumed."


class Question(Data, frozen=True):
    """Input of `ollm -p`: the text, piped input, and whether a person typed the text."""

    text: str
    piped: str = ""
    typed: bool = True


class ChatArguments(ConversationOptions, frozen=True):
    """Options a person gave on the command line."""

    interactive: bool = True
    new: bool = False
    daemon: bool = False
    text: str = ""
    bare: bool = False  # Set for `ollm` without a command: a new chat at once.
    pick: bool = False  # True if the chat begins with the list of sessions, whatever the other options.

    def for_one_shot(self) -> ChatArguments:
        new = not (self.session or self.newest)
        return msgspec.structs.replace(self, one_shot=new, interactive=False)

    @staticmethod
    def from_options(options: Mapping[str, Any]) -> ChatArguments:
        chosen = [name for name in ("new", "session", "newest") if options[name] not in (None, False)]
        if len(chosen) > 1:
            raise UsageError("Use only one of --new, --resume and --continue.", action="Give one of them.")
        if options["session"] is not None and not options["session"].strip():
            raise UsageError("'' is not a session id.", action="Give an id, or at least its first 4 characters.")
        workspace = (options["workspace"] or Path.cwd()).resolve()
        if not workspace.is_dir():
            raise UsageError(
                f"{workspace} is not a directory.", action="Choose the project directory with --workspace."
            )
        check_grants(options["grants"])
        pick = options["session"] == PICK_SESSION
        return ChatArguments(
            workspace=workspace,
            session=None if pick else options["session"],
            flags=build_settings_flags(options),
            text=" ".join(options.get("text") or ()),
            pick=pick,
            bare=options.get("bare", False) and not chosen,
            **{name: options[name] for name in COPIED_OPTIONS},
        )


PICK_SESSION = "?"
COPIED_OPTIONS = ("new", "newest", "full", "force", "beside", "mode", "grants", "yes", "daemon")


def build_settings_flags(options: Mapping[str, Any]) -> dict[str, Any]:
    provider = {"type": options["provider"], "baseUrl": options["base_url"], "model": options["model"]}
    sections = {"provider": provider, "policy": {"approval": options["approval"] or None}}
    given = {name: {key: value for key, value in one.items() if value is not None} for name, one in sections.items()}
    return {name: section for name, section in given.items() if section}


def check_grants(texts: tuple[str, ...]) -> None:
    """Raise an error at once if an --allow is not a valid grant."""
    if texts:
        from ollm.policy.grants import parse_grant

        for text in texts:
            parse_grant(text)
