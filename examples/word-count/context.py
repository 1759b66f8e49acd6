"""A context source: asked before every turn what the model should be told."""

from pathlib import Path

from ollm import ContextEntry, ExtensionContext

MOST = 5


def changed_files(context: ExtensionContext) -> list[ContextEntry]:
    """The files of the workspace's top folder that changed last."""
    files = [path for path in Path(context.workspace).iterdir() if path.is_file() and not path.name.startswith(".")]
    newest = sorted(files, key=lambda path: -path.stat().st_mtime)[:MOST]
    if not newest:
        return []
    listed = "\n".join(f"- {path.name}" for path in newest)
    return [ContextEntry(key="newest", content=f"Changed last:\n{listed}", timestamp="", priority=20)]
