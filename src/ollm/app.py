"""The composition root: builds the parts where they are first needed and closes them in reverse."""
