"""What the operating system does for us."""
