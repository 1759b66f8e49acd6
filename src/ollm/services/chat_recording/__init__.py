"""Recording of sessions (S1, S9): the service a conversation talks to, and all sessions as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ollm.services.chat_recording.library import DeletionLog as DeletionLog
    from ollm.services.chat_recording.library import ErasableStore as ErasableStore
    from ollm.services.chat_recording.library import FindErasableStores as FindErasableStores
    from ollm.services.chat_recording.library import SessionLibrary as SessionLibrary
    from ollm.services.chat_recording.library import find_no_stores as find_no_stores
    from ollm.services.chat_recording.service import ChatRecordingService as ChatRecordingService
    from ollm.services.chat_recording.service import ignore_event as ignore_event
    from ollm.services.chat_recording.service import make_title as make_title

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "library": (
            "DeletionLog",
            "ErasableStore",
            "FindErasableStores",
            "SessionLibrary",
            "find_no_stores",
        ),
        "service": (
            "ChatRecordingService",
            "ignore_event",
            "make_title",
        ),
    },
)
