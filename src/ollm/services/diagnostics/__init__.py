"""Diagnostics of language servers after an edit (decision 0032)."""
