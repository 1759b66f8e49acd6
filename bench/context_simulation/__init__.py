"""Long conversations in small windows, through the library and the command, against a server that counts honestly."""
