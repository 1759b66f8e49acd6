"""Recording of sessions (S1, S9): the service a conversation talks to, and all sessions as a whole."""
