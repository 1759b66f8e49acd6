"""One turn and the conversation around it."""
