"""The agent's tools, one file each (T)."""
