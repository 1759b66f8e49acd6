"""Front matter: the `key: value` lines between two lines of `---` at the top of a Markdown file."""

from __future__ import annotations

_BLOCK_MARKS = ("", ">", "|", ">-", "|-")


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """Its fields, and the text without it. Indented lines, or those of a list, below a key without a value are its
    value."""
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    ends = [number for number, line in enumerate(lines) if line.rstrip() == "---"]
    if len(ends) < 2 or ends[0] != 0:
        return {}, text
    fields: dict[str, str] = {}
    key = ""
    for line in lines[1 : ends[1]]:
        if line.startswith((" ", "\t", "- ")):
            if key:
                fields[key] = f"{fields[key]} {line.strip()}".strip()
        elif not line.startswith("#"):
            key, mark, value = (part.strip() for part in line.partition(":"))
            if mark:
                fields[key] = value.strip("\"'")
            key = key if mark and value in _BLOCK_MARKS else ""
            if key:
                fields[key] = ""
    return fields, "".join(lines[ends[1] + 1 :]).lstrip("\n")
