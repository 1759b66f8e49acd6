"""Recording of sessions (S1, S9): the service a conversation talks to, and all sessions as a whole."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ollm.services.chat_recording.erasable import ErasableStore as ErasableStore
    from ollm.services.chat_recording.erasable import FindErasableStores as FindErasableStores
    from ollm.services.chat_recording.erasable import find_no_stores as find_no_stores
    from ollm.services.chat_recording.library import SessionLibrary as SessionLibrary
    from ollm.services.chat_recording.service import ChatRecordingService as ChatRecordingService
    from ollm.services.chat_recording.service import ignore_event as ignore_event
    from ollm.services.chat_recording.service import make_title as make_title

_PLACES = {
    "ChatRecordingService": "service",
    "SessionLibrary": "library",
    "ErasableStore": "erasable",
    "FindErasableStores": "erasable",
    "find_no_stores": "erasable",
    "ignore_event": "service",
    "make_title": "service",
}


def __getattr__(name: str) -> Any:
    """Imported when first named."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
