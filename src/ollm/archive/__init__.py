"""The team archive: sessions of many machines on PostgreSQL. The rest of the program reaches it through ArchiveHost."""
