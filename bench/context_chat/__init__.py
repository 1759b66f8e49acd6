"""A long chat with a real model in a small window, by the command, with what the server itself counted."""
