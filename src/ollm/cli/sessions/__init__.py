"""`ollm sessions`: list, read, search, export and manage sessions."""
