"""Shell analysis: splits command lines into what they run, read and write, and applies the rules."""
