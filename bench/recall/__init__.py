"""Measures `recall`: facts of everyday life in four languages, asked for in the same and in other words."""
