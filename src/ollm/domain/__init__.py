"""The words of ollm: plain data, no behaviour that touches the world."""
