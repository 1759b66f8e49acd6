"""The composition root, in three scopes: the process, a workspace, a conversation.

Parts are imported and built on first use, so that a command pays only for the parts it needs, and are closed in
reverse order. Nothing else in ollm builds its own collaborators.
"""
