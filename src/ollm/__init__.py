"""A terminal coding agent for the models people host themselves.

Importing this package has no effect and costs next to nothing: names are looked up when they are first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ollm.app.conversation import ask as ask
    from ollm.app.conversation import open_conversation as open_conversation
    from ollm.config.settings import Settings as Settings
    from ollm.domain.context import ActiveContext as ActiveContext
    from ollm.domain.context import CompressionResult as CompressionResult
    from ollm.domain.context import ContextEntry as ContextEntry
    from ollm.domain.context import Usage as Usage
    from ollm.domain.errors import ModelError as ModelError
    from ollm.domain.errors import NoServerError as NoServerError
    from ollm.domain.errors import OllmError as OllmError
    from ollm.domain.errors import ToolFailure as ToolFailure
    from ollm.domain.errors import TurnFailedError as TurnFailedError
    from ollm.domain.errors import UnknownModelError as UnknownModelError
    from ollm.domain.errors import WorkspaceBusyError as WorkspaceBusyError
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
    from ollm.domain.tools import ToolSchema as ToolSchema
    from ollm.domain.tools import Verdict as Verdict
    from ollm.extensions.loader import ExtensionContext as ExtensionContext
    from ollm.policy.engine import PolicyEngine as PolicyEngine
    from ollm.policy.grants import GrantBook as GrantBook
    from ollm.policy.message_bus import MessageBus as MessageBus
    from ollm.policy.rules import RuleSet as RuleSet
    from ollm.policy.rules import read_rules as read_rules
    from ollm.policy.trust import TrustBook as TrustBook
    from ollm.providers.base import AnyPiece as AnyPiece
    from ollm.providers.base import BaseProvider as BaseProvider
    from ollm.providers.base import CallPiece as CallPiece
    from ollm.providers.base import ChatRequest as ChatRequest
    from ollm.providers.base import FinishPiece as FinishPiece
    from ollm.providers.base import ModelInfo as ModelInfo
    from ollm.providers.base import ProgressPiece as ProgressPiece
    from ollm.providers.base import Provider as Provider
    from ollm.providers.base import TextPiece as TextPiece
    from ollm.providers.base import ThinkingPiece as ThinkingPiece
    from ollm.runtime.base import Attachment as Attachment
    from ollm.runtime.base import CommandReply as CommandReply
    from ollm.runtime.base import ConversationOptions as ConversationOptions
    from ollm.runtime.base import Status as Status
    from ollm.runtime.conversation import Conversation as Conversation
    from ollm.runtime.conversation import LocalConversation as LocalConversation
    from ollm.services.chat_compression.compression_state import CompressionOptions as CompressionOptions
    from ollm.services.chat_compression.service import ChatCompressionService as ChatCompressionService
    from ollm.services.chat_recording.library import SessionLibrary as SessionLibrary
    from ollm.services.chat_recording.service import ChatRecordingService as ChatRecordingService
    from ollm.services.context_manager import ContextManager as ContextManager
    from ollm.services.environment_sanitization import EnvironmentSanitizationService as EnvironmentSanitizationService
    from ollm.services.file_discovery.service import FileDiscoveryService as FileDiscoveryService
    from ollm.services.loop_detection import LoopDetectionService as LoopDetectionService
    from ollm.services.loop_detection import LoopPattern as LoopPattern
    from ollm.services.redaction import Redactor as Redactor
    from ollm.services.snapshots import ContextState as ContextState
    from ollm.services.snapshots import SnapshotManager as SnapshotManager
    from ollm.services.token_counting import TokenCounter as TokenCounter
    from ollm.store.session_files.places import SessionPlaces as SessionPlaces
    from ollm.store.session_files.store import SessionFiles as SessionFiles
    from ollm.store.session_index.index import SessionIndex as SessionIndex
    from ollm.store.snapshot_files import SnapshotFiles as SnapshotFiles
    from ollm.system.paths import Boundary as Boundary
    from ollm.tools.framework.base import Tool as Tool
    from ollm.tools.framework.base import ToolContext as ToolContext
    from ollm.tools.framework.base import ToolRegistry as ToolRegistry
    from ollm.tools.framework.base import ToolSpec as ToolSpec
    from ollm.tools.web_search import SearchBackend as SearchBackend
    from ollm.tools.web_search import SearchHit as SearchHit

__version__ = "0.1.0"

if not TYPE_CHECKING:  # A type checker would take any name for an export.

    def __getattr__(name: str) -> object:
        places = _read_exports()
        if name == "__all__":
            return sorted(places)
        if name not in places:
            raise AttributeError(f"module 'ollm' has no attribute {name!r}")
        from importlib import import_module

        return globals().setdefault(name, getattr(import_module(places[name]), name))

    def __dir__() -> list[str]:
        return sorted([*_read_exports(), "__version__"])


def _read_exports() -> dict[str, str]:
    """Read the lines above, `from MODULE import NAME as NAME`, as module by name."""
    import re

    loader: Any = getattr(__spec__, "loader", None)
    found = re.findall(r"^    from (\S+) import (\w+) as \2$", loader.get_source(__name__), re.MULTILINE)
    return {name: module for module, name in found}
