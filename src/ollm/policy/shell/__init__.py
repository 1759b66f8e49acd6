"""Shell command lines taken apart into what they would run, read and write, and judged by the rules."""
