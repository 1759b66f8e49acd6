"""Compression of the active context (S3, H): old words make room for new ones, and can be looked up again.

The archive is never touched. User messages, the system prompt and the newest messages stay; what leaves is summarised,
checked without a model, and cited by number so that `recall` finds it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ollm.services.chat_compression.breaker import CompressionBreaker as CompressionBreaker
    from ollm.services.chat_compression.history import make_compression_changes as make_compression_changes
    from ollm.services.chat_compression.options import CompressionOptions as CompressionOptions
    from ollm.services.chat_compression.options import Summarise as Summarise
    from ollm.services.chat_compression.service import ChatCompressionService as ChatCompressionService

_PLACES = {
    "ChatCompressionService": "service",
    "CompressionBreaker": "breaker",
    "CompressionOptions": "options",
    "Summarise": "options",
    "make_compression_changes": "history",
}


def __getattr__(name: str) -> Any:
    """Imported when first named: most turns never compress."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
