"""Diagnostics of language servers after an edit."""
