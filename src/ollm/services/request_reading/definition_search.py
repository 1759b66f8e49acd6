"""Questions where something is defined, and the command that finds it: a small model takes a use for the definition.

Pure: words in, a command out.
"""

from __future__ import annotations

import re

from ollm.services.request_reading.asked_changes import asks_for_change
from ollm.services.request_reading.plain_words import OWN_FILES
from ollm.services.request_reading.wanted_files import NAMED_FILE

_KIND = (
    r"(?:(?:the|a|our|my|its)\s+)?(?:(?P<kind>functions?|class(?:es)?|methods?|constants?|variables?|struct|interface|type|enum|"
    r"exception|helper|component|decorator|dataclass|fixture)\s+(?:called\s+|named\s+)?)?"
)
_NAME = r"(?P<mark>`)?(?P<name>[A-Za-z_]\w*)(?P<call>\(\))?`?(?:\s+(?P<after>function|class|method|constant))?"
_DEFINED = r"(?:defined|declared|implemented|written|located)"
_FILE = r"(?:file|module|script|place)"
_ASKED = r"\s*(?:(?:find(?:\s+out)?|show|tell|say|let|give)(?:\s+(?:me|us|know))*,?\s+)?"
_PATTERNS = tuple(
    re.compile(_ASKED + wording, re.IGNORECASE)
    for wording in (
        rf"(?:which|what)\s+{_FILE}\s+(?:defines|declares|implements|contains|has|holds)\s+(?:the\s+definition\s+of\s+)?{_KIND}{_NAME}",
        rf"where\s+(?:is|are)\s+{_KIND}{_NAME}\s+(?:actually\s+)?{_DEFINED}",
        rf"where\s+{_KIND}{_NAME}\s+is\s+(?:actually\s+)?{_DEFINED}",
        rf"where\s+do\s+we\s+(?:define|declare|implement)\s+{_KIND}{_NAME}",
        rf"in\s+(?:which|what)\s+{_FILE}\s+(?:is|are)\s+{_KIND}{_NAME}\s+{_DEFINED}",
        rf"in\s+(?:which|what)\s+{_FILE}\s+{_KIND}{_NAME}\s+is\s+{_DEFINED}",
        rf"the\s+{_FILE}\s+(?:that|which)\s+(?:defines|declares|implements)\s+{_KIND}{_NAME}",
    )
)
_ENDS = re.compile(
    r"\s*(?:[.?!]|$|,\s|\s(?:and\s+(?:what|which|how|in|at)|in\s+(?:this|the|our)\s+(?:project|code|repo\w*))\b)"
)
_USED = re.compile(r"\b(?:used|uses|called\s+from|calls|imported|imports)\b", re.IGNORECASE)
_HEADS = r"(def|class|function\*?|fn|func( *\([^)]*\))?|const|let|var|val|type|struct|interface|enum|trait|#define) +"


def find_definition_command(request: str) -> str:
    """The search for a definition, where the request asks in which file it is and names none."""
    if NAMED_FILE.search(request) or _USED.search(request) or asks_for_change(request):
        return ""
    for pattern in _PATTERNS:
        found = pattern.match(request)
        if found and _ENDS.match(request, found.end()) and _is_code(found):
            name = found["name"]
            shell = rf"(^|[^[:alnum:]_.]){name} *\(\) *\{{"
            wanted = rf"{_HEADS}{name}([^[:alnum:]_]|$)|^ *{name} *(:[^=]*)?=[^=]|{shell}"
            return f"grep -rnIE {OWN_FILES} '{wanted}' ."
    return ""


def _is_code(found: re.Match[str]) -> bool:
    """Whether the name can be nothing but one of the code: its kind is said, or it is written as words are not."""
    name = found["name"]
    written = "_" in name.strip("_") or re.search(r"[a-z][A-Z]|[A-Z]{2}|\d", name) is not None
    return bool(found["kind"] or found["after"] or found["mark"] or found["call"]) or written
