"""Requests to the model: instructions, messages, compaction and token counts."""
