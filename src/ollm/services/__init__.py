"""Decisions behind the runtime: each file one requirement, none knows another."""
