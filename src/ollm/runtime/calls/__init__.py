"""Tool calls: parsing, permission, confirmation, execution and recording."""
