"""What a compression leaves in the session's metadata (S3.8, H: compressionHistory)."""

from __future__ import annotations

from typing import Any

import msgspec

from ollm.domain.context import CompressionRecord
from ollm.domain.session import SessionMetadata


def make_compression_changes(metadata: SessionMetadata, record: CompressionRecord) -> dict[str, Any]:
    """The changes one successful compression makes: the count goes up by exactly one, the history grows by one."""
    return {
        "compressionCount": metadata.compression_count + 1,
        "compressionHistory": [*metadata.compression_history, msgspec.to_builtins(record)],
    }
