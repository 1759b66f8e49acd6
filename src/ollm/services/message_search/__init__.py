"""Search in one conversation, for people and models who do not remember the exact words (T9)."""
