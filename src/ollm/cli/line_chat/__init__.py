"""The chat as plain lines, for simple terminals and screen readers."""
