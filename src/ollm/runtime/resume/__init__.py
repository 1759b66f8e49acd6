"""Sessions and workspaces: opening, saving and resuming."""
