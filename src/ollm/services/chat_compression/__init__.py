"""Compression of the active context (S3, H): old words make room for new ones, and can be looked up again.

The archive is never touched. User messages, the system prompt and the newest messages stay; what leaves is summarised,
checked without a model, and cited by number so that `recall` finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ollm.services.chat_compression.breaker import CompressionBreaker as CompressionBreaker
    from ollm.services.chat_compression.history import make_compression_changes as make_compression_changes
    from ollm.services.chat_compression.options import CompressionOptions as CompressionOptions
    from ollm.services.chat_compression.options import PreparedSummary as PreparedSummary
    from ollm.services.chat_compression.options import Summarise as Summarise
    from ollm.services.chat_compression.service import ChatCompressionService as ChatCompressionService

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "breaker": ("CompressionBreaker",),
        "history": ("make_compression_changes",),
        "options": (
            "CompressionOptions",
            "PreparedSummary",
            "Summarise",
        ),
        "service": ("ChatCompressionService",),
    },
)
