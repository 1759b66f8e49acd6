"""The head of an exported page: the style it shares with the pages of the daemon, and a policy to load nothing."""

from __future__ import annotations

from importlib.resources import files

STYLE_FILES = tuple(files("ollm.services.session_export") / name for name in ("colours.css", "transcript.css"))
_PAGE_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
"""
_EXPORT_STYLE = """\
body { max-width: 54rem; margin: 2rem auto; padding: 0 1rem; display: flex; flex-direction: column; }
header { order: 0; } nav { order: 1; margin-bottom: 1.5rem; } main { order: 2; min-width: 0; }
h1 { font-size: 1.5rem; margin: 0; } nav h2 { font-size: .95rem; margin: 0; }
.meta { color: var(--quiet); font-size: .85rem; overflow-wrap: anywhere; }
nav { border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem; max-height: 40vh; overflow: auto; }
nav ol { margin: .3rem 0 0; padding-left: 1.6rem; }
@media print { nav { max-height: none; } }
"""


def render_page_head(title: str) -> str:
    """Up to the body; the title is HTML already."""
    style = "".join(found.read_text(encoding="utf-8") for found in STYLE_FILES)
    return _PAGE_HEAD.replace("{title}", title).replace("{style}", style + _EXPORT_STYLE)
