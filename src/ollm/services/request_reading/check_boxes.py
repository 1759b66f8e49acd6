"""Boxes of a list in Markdown that are to be ticked or emptied, by the words of their items. Pure: words in, commands
out.

A small model that is to tick an item off deletes it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from ollm.domain.struct import Data
from ollm.services.request_reading.asked_changes import asks_for_change
from ollm.services.request_reading.plain_words import CHANGE_VERBS, FILE_NAME, is_named_file, is_ordered
from ollm.services.request_reading.replaced_names import escape_for_sed, escape_replacement
from ollm.services.request_reading.reservations import SUPPOSED
from ollm.services.request_reading.shown_files import list_shown_texts

PAGES = (".md", ".markdown", ".txt", ".org", ".rst")
_BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[(?P<mark>[ xX])\]\s+(?P<text>.*\S)\s*$")
_DONE = r"(?:done|complete|completed|finished|ticked(?:\s+off)?|checked(?:\s+off)?)"
_OPEN = (
    r"(?:not\s+(?:yet\s+)?(?:done|complete|completed|finished)|undone|unfinished|incomplete|open|todo|to\s+do|"
    r"unticked|unchecked)"
)
_WHAT = r"(?P<what>(?:[^.;:\n]|\.(?=\w))+?)"
_LIST = r"(?:the|my|our)\s+(?:(?:todo|to-do|task|check|shopping)[- ]?)?list\b"
_PLACE = (
    rf"(?:\s+(?:(?:in|on|from|of)\s+)?{_LIST})?"
    rf"(?:\s+(?:in|on|from|of)\s+(?:the\s+|my\s+|our\s+)?(?:file\s+)?`?(?:{FILE_NAME})\b`?)?"
)
_ORDERED = r"(?:^\s*|[.;:,]\s+|\b(?:and|then|please|now)\s+)"
_ENDS = (  # what follows is another order
    rf"(?=(?:,?\s+(?:and|then)|[,:])\s+(?:(?:and|then|also)\s+)?(?:{'|'.join(CHANGE_VERBS)}|check|cross|reopen|run|tell|show|say|"
    r"give|list|print|count|write|commit|do|leave|keep)\b|;|[.!]?\s*$|\.\s)"
)
_BEFORE = rf"(?:(?:in|on)\s+(?:the\s+)?`?(?:{FILE_NAME})`?,?\s+)?"
_ORDERS = tuple(
    (
        re.compile(rf"{_ORDERED}{_BEFORE}(?P<order>{words}){_PLACE}{_ENDS}", re.IGNORECASE),
        ticked,
    )
    for words, ticked in (
        (rf"(?:mark|set)\s+{_WHAT}\s+(?:as\s+|to\s+)?{_OPEN}", False),
        (rf"(?:untick|uncheck|reopen)\s+{_WHAT}", False),
        (rf"(?:mark|set)\s+{_WHAT}\s+(?:as\s+|to\s+)?{_DONE}", True),
        (rf"(?:tick|check|cross)\s+off\s+{_WHAT}", True),
        (rf"(?:tick|check|cross)\s+{_WHAT}\s+off", True),
        (rf"tick\s+(?:the\s+box\s+(?:of|for|at|before)\s+)?{_WHAT}", True),
    )
)
_KIND = re.compile(
    r"^(?:the\s+|my\s+|our\s+)?(?:(?:to-?do\s+|list\s+)?(?:item|task|entry|todo|point|box)s?\s+)?(?:(?:of|for|called|named)\s+)?",
    re.IGNORECASE,
)
_BEHIND = re.compile(r"\s+(?:item|task|entry|todo|point|box)$", re.IGNORECASE)
_AND = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")


class CheckBox(Data, frozen=True):
    """A line of a list with a box that is to be another."""

    text: str
    line: str
    wanted: str


def find_box_command(request: str, primed: str) -> str:
    """The command that ticks or empties the boxes a request names before anything else, in the one file that was shown
    whole and has them."""
    shown = list_shown_texts(primed)
    order = next((found for pattern, _ in _ORDERS if (found := pattern.match(request))), None)
    founds = [(path, boxes) for path, text in shown if (boxes := find_boxes(request, path, text))] if order else []
    return _make_command(*founds[0]) if len(founds) == 1 else ""


def find_box_steps(request: str, texts: Mapping[str, str]) -> list[str]:
    """The step for boxes that were to be ticked or emptied and are not."""
    founds = [(path, boxes) for path, text in texts.items() if (boxes := find_boxes(request, path, text))]
    if len(founds) != 1:
        return []
    path, boxes = founds[0]
    names = " and ".join(f"'{box.text}'" for box in boxes)
    return [f"The box of {names} is not changed in {path}. Now run {_make_command(path, boxes)}."]


def find_boxes(request: str, path: str, text: str) -> list[CheckBox]:
    """The boxes that are to change; none unless the words of each are those of one item alone."""
    here = path.endswith(PAGES) and is_named_file(path, request)
    if not here or SUPPOSED.search(request) or not asks_for_change(request):
        return []
    lines = text.splitlines()
    made: list[CheckBox] = []
    for what, ticked in _list_orders(request):
        items = _find_items(what, lines)
        if not items:
            return []
        made += [box for line in items if (box := _make_box(line, lines, ticked))]
    return list(dict.fromkeys(made))


def _list_orders(request: str) -> list[tuple[str, bool]]:
    """What is to be ticked or emptied. Of two readings of the same words the first counts."""
    taken: list[tuple[int, int]] = []
    orders = []
    for pattern, ticked in _ORDERS:
        for found in pattern.finditer(request):
            start, end = found.span("order")
            if is_ordered(request, start) and all(end <= first or last <= start for first, last in taken):
                taken.append((start, end))
                orders.append((found["what"].strip(), ticked))
    return orders


def _find_items(what: str, lines: list[str]) -> list[str]:
    """The lines of these items: all the words for one, or a list of several."""
    if line := _find_item(what, lines):
        return [line]
    parts = [_find_item(part, lines) for part in _AND.split(what)]
    return parts if len(parts) > 1 and all(parts) else []


def _find_item(what: str, lines: list[str]) -> str:
    """The only line whose item is called so, or else the only one whose item has these words in their order."""
    words = _strip_item(what)
    boxes = [(line, _strip_item(found["text"])) for line in lines if (found := _BOX.match(line))]
    same = [line for line, text in boxes if text == words]
    inside = rf"(?<!\w){re.escape(words)}(?!\w)"
    like = same or [line for line, text in boxes if words and re.search(inside, text)]
    return like[0] if len(like) == 1 else ""


def _strip_item(text: str) -> str:
    """An item in small letters without quotes, marks and the words for what it is."""
    bare = _BEHIND.sub("", _KIND.sub("", text.strip())) or text
    bare = re.sub(r"[`*_\"'“”‘’]", "", bare)
    return re.sub(r"^(?:the|a|an)\s+", "", " ".join(bare.split()).rstrip(".!").lower())


def _make_box(line: str, lines: list[str], ticked: bool) -> CheckBox | None:
    found = _BOX.match(line)
    if found is None or (found["mark"] != " ") == ticked:
        return None
    others = "".join(box["mark"] for other in lines if (box := _BOX.match(other)))
    mark = ("X" if "X" in others and "x" not in others else "x") if ticked else " "
    place = found.start("mark")
    return CheckBox(text=found["text"], line=line, wanted=f"{line[:place]}{mark}{line[place + 1 :]}")


def _make_command(path: str, boxes: list[CheckBox]) -> str:
    changes = (f"s/^{escape_for_sed(box.line)}$/{escape_replacement(box.wanted)}/" for box in boxes)
    return f"sed -i {shlex.quote('; '.join(changes))} {shlex.quote(path)}"
