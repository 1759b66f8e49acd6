"""A terminal coding agent for the models people host themselves.

Importing this package has no effect and costs next to nothing: names are looked up when they are first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ollm.app.conversation import open_conversation as open_conversation
    from ollm.config.settings import Settings as Settings
    from ollm.domain.context import ActiveContext as ActiveContext
    from ollm.domain.context import CompressionResult as CompressionResult
    from ollm.domain.context import ContextEntry as ContextEntry
    from ollm.domain.errors import OllmError as OllmError
    from ollm.domain.errors import ToolFailure as ToolFailure
    from ollm.domain.events import AnyEvent as AnyEvent
    from ollm.domain.events import ConfirmationRequested as ConfirmationRequested
    from ollm.domain.events import Event as Event
    from ollm.domain.events import LoopDetected as LoopDetected
    from ollm.domain.events import Notice as Notice
    from ollm.domain.events import TextDelta as TextDelta
    from ollm.domain.events import ThinkingDelta as ThinkingDelta
    from ollm.domain.events import ToolFinished as ToolFinished
    from ollm.domain.events import ToolOutput as ToolOutput
    from ollm.domain.events import ToolStarted as ToolStarted
    from ollm.domain.events import TurnFinished as TurnFinished
    from ollm.domain.events import TurnStarted as TurnStarted
    from ollm.domain.files import DiscoveryOptions as DiscoveryOptions
    from ollm.domain.files import FileEntry as FileEntry
    from ollm.domain.messages import ImagePart as ImagePart
    from ollm.domain.messages import Message as Message
    from ollm.domain.messages import PromptMessage as PromptMessage
    from ollm.domain.messages import TextPart as TextPart
    from ollm.domain.session import Session as Session
    from ollm.domain.tools import ConfirmationAnswer as ConfirmationAnswer
    from ollm.domain.tools import ConfirmationDetails as ConfirmationDetails
    from ollm.domain.tools import ErrorInfo as ErrorInfo
    from ollm.domain.tools import Location as Location
    from ollm.domain.tools import PolicyRequest as PolicyRequest
    from ollm.domain.tools import Risk as Risk
    from ollm.domain.tools import ToolCallRecord as ToolCallRecord
    from ollm.domain.tools import ToolResult as ToolResult
    from ollm.domain.tools import Verdict as Verdict
    from ollm.extensions.loader import ExtensionContext as ExtensionContext
    from ollm.policy.engine import PolicyEngine as PolicyEngine
    from ollm.policy.grants import GrantBook as GrantBook
    from ollm.policy.message_bus import MessageBus as MessageBus
    from ollm.policy.rules import RuleSet as RuleSet
    from ollm.policy.rules import read_rules as read_rules
    from ollm.policy.trust import TrustBook as TrustBook
    from ollm.providers.base import Provider as Provider
    from ollm.runtime.base import Attachment as Attachment
    from ollm.runtime.base import CommandReply as CommandReply
    from ollm.runtime.base import Conversation as Conversation
    from ollm.runtime.conversation import LocalConversation as LocalConversation
    from ollm.runtime.conversation_options import ConversationOptions as ConversationOptions
    from ollm.services.chat_compression import ChatCompressionService as ChatCompressionService
    from ollm.services.chat_compression import CompressionOptions as CompressionOptions
    from ollm.services.chat_recording import ChatRecordingService as ChatRecordingService
    from ollm.services.chat_recording import SessionLibrary as SessionLibrary
    from ollm.services.context_manager import ContextManager as ContextManager
    from ollm.services.environment_sanitization import EnvironmentSanitizationService as EnvironmentSanitizationService
    from ollm.services.file_discovery import FileDiscoveryService as FileDiscoveryService
    from ollm.services.loop_detection import LoopDetectionService as LoopDetectionService
    from ollm.services.loop_detection import LoopPattern as LoopPattern
    from ollm.services.redaction import Redactor as Redactor
    from ollm.services.snapshots import ContextState as ContextState
    from ollm.services.snapshots import SnapshotManager as SnapshotManager
    from ollm.services.token_counting import TokenCounter as TokenCounter
    from ollm.store.session_files import SessionFiles as SessionFiles
    from ollm.store.session_files import SessionPlaces as SessionPlaces
    from ollm.store.session_index.index import SessionIndex as SessionIndex
    from ollm.store.snapshot_files import SnapshotFiles as SnapshotFiles
    from ollm.system.paths import Boundary as Boundary
    from ollm.tools.framework.base import Tool as Tool
    from ollm.tools.framework.base import ToolContext as ToolContext
    from ollm.tools.framework.base import ToolSpec as ToolSpec
    from ollm.tools.framework.registry import ToolRegistry as ToolRegistry
    from ollm.tools.web.search_backends import SearchBackend as SearchBackend
    from ollm.tools.web.search_backends import SearchHit as SearchHit

__version__ = "0.1.0"

_EXPORTS: dict[str, str] = {
    "ActiveContext": "ollm.domain.context",
    "AnyEvent": "ollm.domain.events",
    "Attachment": "ollm.runtime.base",
    "Boundary": "ollm.system.paths",
    "ChatCompressionService": "ollm.services.chat_compression",
    "ChatRecordingService": "ollm.services.chat_recording",
    "CommandReply": "ollm.runtime.base",
    "CompressionOptions": "ollm.services.chat_compression",
    "CompressionResult": "ollm.domain.context",
    "ConfirmationAnswer": "ollm.domain.tools",
    "ConfirmationDetails": "ollm.domain.tools",
    "ConfirmationRequested": "ollm.domain.events",
    "ContextEntry": "ollm.domain.context",
    "ContextManager": "ollm.services.context_manager",
    "ContextState": "ollm.services.snapshots",
    "Conversation": "ollm.runtime.base",
    "DiscoveryOptions": "ollm.domain.files",
    "EnvironmentSanitizationService": "ollm.services.environment_sanitization",
    "ErrorInfo": "ollm.domain.tools",
    "Event": "ollm.domain.events",
    "ExtensionContext": "ollm.extensions.loader",
    "FileDiscoveryService": "ollm.services.file_discovery",
    "FileEntry": "ollm.domain.files",
    "GrantBook": "ollm.policy.grants",
    "ImagePart": "ollm.domain.messages",
    "LocalConversation": "ollm.runtime.conversation",
    "Location": "ollm.domain.tools",
    "LoopDetected": "ollm.domain.events",
    "LoopDetectionService": "ollm.services.loop_detection",
    "LoopPattern": "ollm.services.loop_detection",
    "Message": "ollm.domain.messages",
    "MessageBus": "ollm.policy.message_bus",
    "Notice": "ollm.domain.events",
    "OllmError": "ollm.domain.errors",
    "open_conversation": "ollm.app.conversation",
    "ConversationOptions": "ollm.runtime.conversation_options",
    "PolicyEngine": "ollm.policy.engine",
    "PolicyRequest": "ollm.domain.tools",
    "PromptMessage": "ollm.domain.messages",
    "Provider": "ollm.providers.base",
    "read_rules": "ollm.policy.rules",
    "Redactor": "ollm.services.redaction",
    "Risk": "ollm.domain.tools",
    "RuleSet": "ollm.policy.rules",
    "SearchBackend": "ollm.tools.web.search_backends",
    "SearchHit": "ollm.tools.web.search_backends",
    "Session": "ollm.domain.session",
    "SessionFiles": "ollm.store.session_files",
    "SessionIndex": "ollm.store.session_index.index",
    "SessionLibrary": "ollm.services.chat_recording",
    "SessionPlaces": "ollm.store.session_files",
    "Settings": "ollm.config.settings",
    "SnapshotFiles": "ollm.store.snapshot_files",
    "SnapshotManager": "ollm.services.snapshots",
    "TextDelta": "ollm.domain.events",
    "TextPart": "ollm.domain.messages",
    "ThinkingDelta": "ollm.domain.events",
    "TokenCounter": "ollm.services.token_counting",
    "Tool": "ollm.tools.framework.base",
    "ToolCallRecord": "ollm.domain.tools",
    "ToolContext": "ollm.tools.framework.base",
    "ToolFailure": "ollm.domain.errors",
    "ToolFinished": "ollm.domain.events",
    "ToolOutput": "ollm.domain.events",
    "ToolRegistry": "ollm.tools.framework.registry",
    "ToolResult": "ollm.domain.tools",
    "ToolSpec": "ollm.tools.framework.base",
    "ToolStarted": "ollm.domain.events",
    "TrustBook": "ollm.policy.trust",
    "TurnFinished": "ollm.domain.events",
    "TurnStarted": "ollm.domain.events",
    "Verdict": "ollm.domain.tools",
}


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'ollm' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted([*_EXPORTS, "__version__"])
