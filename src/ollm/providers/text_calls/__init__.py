"""Tool calls written as text: rendering, parsing and repair."""
