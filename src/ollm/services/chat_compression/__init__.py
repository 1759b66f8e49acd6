"""Compression of the active context (S3, H): old words make room for new ones, and can be looked up again.

The archive is never touched. User messages, the system prompt and the newest messages stay; what leaves is summarised,
checked without a model, and cited by number so that `recall` finds it.
"""
