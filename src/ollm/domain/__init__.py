"""The data types of ollm: plain data without side effects."""
