"""The base of all tools: the Tool class, arguments, schemas, the registry, output limits."""
