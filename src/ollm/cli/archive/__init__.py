"""`ollm archive`: the copy of sessions in PostgreSQL that a team or several machines share."""
