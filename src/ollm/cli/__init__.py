"""The command: what people type and what they see."""
