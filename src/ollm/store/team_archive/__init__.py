"""The team archive: a copy of sessions in PostgreSQL that many machines share. Imported only by who talks to it."""
