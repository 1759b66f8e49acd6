"""The index of sessions (design 4): derived from their files, for lists and search; may be deleted at any time."""
