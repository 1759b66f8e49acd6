"""What every tool is built on: the Tool class, arguments, schemas, the registry, output limits."""
