"""Files of data that do not parse where something is to be mended: a small model changes the program that reads them.

Pure: words and texts in, sentences out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ollm.services.request_reading.asked_changes import asks_for_change
from ollm.services.request_reading.plain_words import is_kept
from ollm.services.request_reading.wanted_files import NAMED_FILE

_DATA = (".json", ".toml")
_MENDS = re.compile(
    r"\b(?:fix|mend|repair|correct|invalid|valid|malformed|pars(?:e|es|ed|ing)|syntax|broken|mistakes?|errors?|wrong|"
    r"fails?|crash\w*|breaks|(?:cannot|can't|could\s+not|couldn't)\s+(?:be\s+)?(?:read|load))",
    re.IGNORECASE,
)
_COMMENTED = re.compile(
    r"(?:config[^/]*|devcontainer|\.eslintrc|\.babelrc|\.vscode/[^/]+)\.json$"
)  # by habit, some of them
SAID = re.compile(r"^(?P<name>[\w./-]+) does not parse: .+\. Now mend (?P=name)\.$", re.MULTILINE)


def find_broken_data(request: str, texts: Mapping[str, str]) -> list[str]:
    """The step for each file of data that is named and does not parse, where something is to be mended."""
    if not _MENDS.search(request) or not asks_for_change(request):
        return []
    named = {name.rpartition("/")[2] for name in NAMED_FILE.findall(request)}
    concerned = [name for name in texts if name.endswith(_DATA) and name.rpartition("/")[2] in named]
    wrong = {name: _find_error(name, texts[name]) for name in concerned if not is_kept(name, request)}
    return [f"{name} does not parse: {error.rstrip('.')}. Now mend {name}." for name, error in wrong.items() if error]


def _find_error(name: str, text: str) -> str:
    """What the parser says; nothing where it parses, or may have comments that are no mistake."""
    import json
    import tomllib

    try:
        if name.endswith(".toml"):
            tomllib.loads(text)
        elif not (_COMMENTED.search(name) and re.search(r"^\s*(?://|/\*)", text, re.MULTILINE)):
            json.loads(text)
    except (ValueError, RecursionError) as error:
        return str(error).splitlines()[0]
    return ""
