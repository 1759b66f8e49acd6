"""`ollm sessions`: list, read, search, export and manage what was said."""
