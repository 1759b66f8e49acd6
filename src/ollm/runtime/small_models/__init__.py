"""Help for models too small for tool calls: the block protocol, priming and a guard."""
