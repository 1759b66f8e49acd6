"""The hands of the agent, one file each (T)."""
