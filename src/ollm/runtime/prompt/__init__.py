"""What the model is sent: instructions, messages, compaction and token counts."""
