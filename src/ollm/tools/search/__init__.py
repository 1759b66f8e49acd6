"""What the search tools share: scope, ripgrep and its matches."""
