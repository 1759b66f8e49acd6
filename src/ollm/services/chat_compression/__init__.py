"""Compression of the active context (S3, H): old words make room for new ones, and can be looked up again.

The archive is never touched. User messages, the system prompt and the newest messages stay; what leaves is summarised,
checked without a model, and cited by number so that `recall` finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ollm.services.chat_compression.compression_state import CompressionOptions as CompressionOptions
    from ollm.services.chat_compression.compression_state import PreparedSummary as PreparedSummary
    from ollm.services.chat_compression.compression_state import Summarise as Summarise
    from ollm.services.chat_compression.service import ChatCompressionService as ChatCompressionService

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "compression_state": ("CompressionOptions", "PreparedSummary", "Summarise"),
        "service": ("ChatCompressionService",),
    },
)
