"""Mutation testing: break one thing at a time, and see whether a test notices."""
