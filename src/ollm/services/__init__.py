"""Decisions behind the runtime: one requirement per file."""
