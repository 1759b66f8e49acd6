"""Session files (S1, S2, design 3.8): one JSON document a session, written through an append-only journal beside it."""

from ollm.store.session_files.loading import Loaded
from ollm.store.session_files.places import Places, parse_id
from ollm.store.session_files.store import SessionFiles
from ollm.store.session_files.writer import SessionWriter

__all__ = ["Loaded", "Places", "SessionFiles", "SessionWriter", "parse_id"]
