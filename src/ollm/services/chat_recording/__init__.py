"""Recording of sessions (S1, S9): the service a conversation talks to, and all sessions as a whole."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ollm.services.chat_recording.erasable import Trace as Trace
    from ollm.services.chat_recording.erasable import Traces as Traces
    from ollm.services.chat_recording.erasable import no_traces as no_traces
    from ollm.services.chat_recording.library import SessionLibrary as SessionLibrary
    from ollm.services.chat_recording.service import ChatRecordingService as ChatRecordingService
    from ollm.services.chat_recording.service import silent as silent
    from ollm.services.chat_recording.service import title_of as title_of

_PLACES = {
    "ChatRecordingService": "service",
    "SessionLibrary": "library",
    "Trace": "erasable",
    "Traces": "erasable",
    "no_traces": "erasable",
    "silent": "service",
    "title_of": "service",
}


def __getattr__(name: str) -> Any:
    """Imported when first named."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
