"""Sessions as files: one JSON document and a journal beside it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ollm.store.session_files.loading import LoadedSession as LoadedSession
    from ollm.store.session_files.loading import SessionStream as SessionStream
    from ollm.store.session_files.places import SessionPlaces as SessionPlaces
    from ollm.store.session_files.places import parse_id as parse_id
    from ollm.store.session_files.store import MessagePage as MessagePage
    from ollm.store.session_files.store import SessionFiles as SessionFiles
    from ollm.store.session_files.writer import SessionWriter as SessionWriter

_PLACES = {
    "LoadedSession": "loading",
    "MessagePage": "store",
    "SessionPlaces": "places",
    "parse_id": "places",
    "SessionFiles": "store",
    "SessionStream": "loading",
    "SessionWriter": "writer",
}


def __getattr__(name: str) -> Any:
    """Imported when first named: writing a new session needs nothing of what reads an old one."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
