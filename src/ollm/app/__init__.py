"""The composition root, in three scopes: the process, a workspace, a conversation.

Each part is imported and built where it is first needed, so that a command pays for what it uses; parts are closed in
reverse. Nothing else in the house builds its own collaborators.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ollm.app.closed_session import ClosedSession as ClosedSession
    from ollm.app.conversation import ConversationScope as ConversationScope
    from ollm.app.conversation import open_conversation as open_conversation
    from ollm.app.conversation import supports_images as supports_images
    from ollm.app.process import ProcessScope as ProcessScope
    from ollm.app.run_settings import print_warning as print_warning
    from ollm.app.run_settings import redact_error as redact_error
    from ollm.app.run_tool import create_tool_registry as create_tool_registry
    from ollm.app.run_tool import run_tool_call as run_tool_call
    from ollm.app.workspace import WorkspaceScope as WorkspaceScope
    from ollm.app.workspace import build_rule_set as build_rule_set

_PLACES = {
    "ProcessScope": "ollm.app.process",
    "WorkspaceScope": "ollm.app.workspace",
    "ConversationScope": "ollm.app.conversation",
    "ClosedSession": "ollm.app.closed_session",
    "open_conversation": "ollm.app.conversation",
    "run_tool_call": "ollm.app.run_tool",
    "create_tool_registry": "ollm.app.run_tool",
    "redact_error": "ollm.app.run_settings",
    "build_rule_set": "ollm.app.workspace",
    "supports_images": "ollm.app.conversation",
    "print_warning": "ollm.app.run_settings",
}


def __getattr__(name: str) -> Any:
    """Each scope is imported when it is first named."""
    if name not in _PLACES:
        raise AttributeError(f"module 'ollm.app' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
