"""A terminal coding agent for the models people host themselves.

Importing this package has no effect and costs next to nothing: names are looked up when they are first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_EXPORTS: dict[str, str] = {
    "Boundary": "ollm.system.paths",
    "ChatCompressionService": "ollm.services.chat_compression",
    "ChatRecordingService": "ollm.services.chat_recording",
    "CompressionOptions": "ollm.services.chat_compression",
    "ContextManager": "ollm.services.context_manager",
    "ContextState": "ollm.services.snapshots",
    "DiscoveryOptions": "ollm.domain.files",
    "EnvironmentSanitizationService": "ollm.services.environment_sanitization",
    "FileDiscoveryService": "ollm.services.file_discovery",
    "FileEntry": "ollm.domain.files",
    "GrantBook": "ollm.policy.grants",
    "Message": "ollm.domain.messages",
    "LoopDetectionService": "ollm.services.loop_detection",
    "LoopPattern": "ollm.services.loop_detection",
    "MessageBus": "ollm.policy.message_bus",
    "PolicyEngine": "ollm.policy.engine",
    "PolicyRequest": "ollm.domain.tools",
    "Redactor": "ollm.services.redaction",
    "RuleSet": "ollm.policy.rules",
    "SessionFiles": "ollm.store.session_files",
    "SessionIndex": "ollm.store.session_index.index",
    "SessionLibrary": "ollm.services.chat_recording",
    "SnapshotManager": "ollm.services.snapshots",
    "TextPart": "ollm.domain.messages",
    "TokenCounter": "ollm.services.token_counting",
    "Tool": "ollm.tools.base",
    "ToolCallRecord": "ollm.domain.tools",
    "ToolContext": "ollm.tools.base",
    "ToolRegistry": "ollm.tools.registry",
    "ToolResult": "ollm.domain.tools",
    "ToolSpec": "ollm.tools.base",
    "TrustBook": "ollm.policy.trust",
    "read_rules": "ollm.policy.rules",
}


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'ollm' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted([*_EXPORTS, "__version__"])
