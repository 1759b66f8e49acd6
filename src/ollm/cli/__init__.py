"""The command line interface: commands and their output."""
