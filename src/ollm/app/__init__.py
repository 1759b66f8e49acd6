"""The composition root, in three scopes: the process, a workspace, a conversation.

Each part is imported and built where it is first needed, so that a command pays for what it uses; parts are closed in
reverse. Nothing else in the house builds its own collaborators.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ollm.app.closed_session import StoredScope as StoredScope
    from ollm.app.conversation import ConversationScope as ConversationScope
    from ollm.app.conversation import can_see as can_see
    from ollm.app.conversation import open_conversation as open_conversation
    from ollm.app.process import Process as Process
    from ollm.app.run_settings import redact_error as redact_error
    from ollm.app.run_settings import to_stderr as to_stderr
    from ollm.app.run_tool import run_by_hand as run_by_hand
    from ollm.app.run_tool import tools_of as tools_of
    from ollm.app.workspace import WorkspaceScope as WorkspaceScope
    from ollm.app.workspace import rule_set as rule_set

_PLACES = {
    "Process": "ollm.app.process",
    "WorkspaceScope": "ollm.app.workspace",
    "ConversationScope": "ollm.app.conversation",
    "StoredScope": "ollm.app.closed_session",
    "open_conversation": "ollm.app.conversation",
    "run_by_hand": "ollm.app.run_tool",
    "tools_of": "ollm.app.run_tool",
    "redact_error": "ollm.app.run_settings",
    "rule_set": "ollm.app.workspace",
    "can_see": "ollm.app.conversation",
    "to_stderr": "ollm.app.run_settings",
}


def __getattr__(name: str) -> Any:
    """Each scope is imported when it is first named."""
    if name not in _PLACES:
        raise AttributeError(f"module 'ollm.app' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
