"""Words of the house: plain data, no behaviour that touches the world."""
