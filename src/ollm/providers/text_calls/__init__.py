"""Tool calls that a model writes as text: how they are shown, found and repaired."""
