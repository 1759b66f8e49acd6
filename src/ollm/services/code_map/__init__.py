"""Definitions in a project's code: outlines of files, single definitions, and a map of the most used ones."""
