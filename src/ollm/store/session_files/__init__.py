"""Sessions as files: one JSON document and a journal beside it."""
