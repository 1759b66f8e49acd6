"""Shared code of the search tools: scope, ripgrep and its matches."""
