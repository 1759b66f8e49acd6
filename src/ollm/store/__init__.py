"""Data on disk."""
