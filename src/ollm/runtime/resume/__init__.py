"""Sessions and workspaces as they are opened, saved and resumed."""
