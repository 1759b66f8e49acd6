"""`ollm policy`: read the rules, try them, and revoke grants."""
