"""Help for models too small for tool calls: the block protocol, priming, a guard and facts."""
