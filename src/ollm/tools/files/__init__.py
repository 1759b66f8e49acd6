"""Shared code of the file tools: reading, encodings, matching edits, writing."""
