"""Recording of sessions (S1, S9, design 3.8-3.11): the service a conversation talks to, and all sessions as a whole."""

from ollm.services.chat_recording.library import SessionLibrary
from ollm.services.chat_recording.service import ChatRecordingService, estimate_tokens, silent, title_of
from ollm.services.chat_recording.traces import Trace, Traces, no_traces

__all__ = [
    "ChatRecordingService",
    "SessionLibrary",
    "Trace",
    "Traces",
    "estimate_tokens",
    "no_traces",
    "silent",
    "title_of",
]
