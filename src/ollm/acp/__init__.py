"""Editors as front ends: the Agent Client Protocol over standard input and output."""
