"""The model of a conversation: requests, tool call forms, parsing answers, speed."""
