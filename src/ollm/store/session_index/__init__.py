"""The index of sessions: derived from their files, for lists and search; may be deleted at any time."""
