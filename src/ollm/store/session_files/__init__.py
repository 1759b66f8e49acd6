"""Sessions as files: one JSON document and a journal beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ollm.domain.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ollm.store.session_files.loading import LoadedSession as LoadedSession
    from ollm.store.session_files.loading import SessionStream as SessionStream
    from ollm.store.session_files.places import SessionPlaces as SessionPlaces
    from ollm.store.session_files.places import parse_id as parse_id
    from ollm.store.session_files.store import MessagePage as MessagePage
    from ollm.store.session_files.store import SessionFiles as SessionFiles
    from ollm.store.session_files.writer import SessionWriter as SessionWriter

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "loading": (
            "LoadedSession",
            "SessionStream",
        ),
        "places": (
            "SessionPlaces",
            "parse_id",
        ),
        "store": (
            "MessagePage",
            "SessionFiles",
        ),
        "writer": ("SessionWriter",),
    },
)
