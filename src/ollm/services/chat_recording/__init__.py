"""Recording of sessions (S1, S9): the service for one conversation, and the library of all sessions."""
