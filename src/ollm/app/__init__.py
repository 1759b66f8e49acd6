"""The composition root, in three scopes: the process, a workspace, a conversation.

Parts are imported and built on first use, so that a command pays only for the parts it needs, and are closed in
reverse order. Nothing else in ollm builds its own collaborators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ollm.app.closed_session import ClosedSession as ClosedSession
    from ollm.app.conversation import ConversationScope as ConversationScope
    from ollm.app.conversation import open_conversation as open_conversation
    from ollm.app.process import ProcessScope as ProcessScope
    from ollm.app.process import print_warning as print_warning
    from ollm.app.process import redact_error as redact_error
    from ollm.app.toolbox import create_tool_registry as create_tool_registry
    from ollm.app.toolbox import run_tool_call as run_tool_call
    from ollm.app.workspace import WorkspaceScope as WorkspaceScope
    from ollm.app.workspace import build_rule_set as build_rule_set

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "closed_session": ("ClosedSession",),
        "conversation": ("ConversationScope", "open_conversation"),
        "process": ("ProcessScope", "print_warning", "redact_error"),
        "toolbox": ("create_tool_registry", "run_tool_call"),
        "workspace": ("WorkspaceScope", "build_rule_set"),
    },
)
