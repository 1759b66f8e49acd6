"""Compression of the active context (S3, H): replaces old messages with summaries that cite them.

The archive is never touched. User messages, the system prompt and the newest messages stay. Removed messages are
summarised, the summary is checked without a model, and it cites their numbers so that `recall` finds them.
"""
