"""Shipping of sessions to the team archive and back: what leaves, in which order, and how it becomes a session."""
