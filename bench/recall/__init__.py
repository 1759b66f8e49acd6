"""What people tell a coding agent, and the questions they ask about it weeks later: how many `recall` answers."""
