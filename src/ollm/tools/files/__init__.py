"""What the file tools share: reading, encodings, matching edits, writing."""
