"""What real servers said, kept for the usual run: no more of it than is read again, one exchange a line."""

import json
import re
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("recorded")
KEPT_EVENTS = (4, 4)  # at the beginning and the end of a stream
VOLATILE = re.compile(r'"\w*cost\w*":null,|"created":\d+,|"id":"modelperm-[0-9a-f]+",')
UNREAD_TOOL_KEYS = ("outputSchema", "annotations", "execution", "title", "icons")


def write_recording(name: str, record: dict[str, Any], hidden: dict[str, str]) -> None:
    """`hidden`: texts of this machine, and what is written in their place."""
    entries = (
        (json.dumps(key), _dump_list(value) if isinstance(value, list) else _dump(value))
        for key, value in record.items()
    )
    text = ",\n".join(f"{key}: {value}" for key, value in entries)
    for found, mark in hidden.items():
        text = text.replace(found, mark)
    (RECORDED / f"{name}.json").write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _dump_list(values: list[Any]) -> str:
    return "[\n" + ",\n".join(map(_dump, values)) + "\n]"


def pack_scenarios(scenarios: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Each page once, and the numbers of the pages that a scenario is made of."""
    pages: list[dict[str, Any]] = []
    numbers: dict[str, list[int]] = {}
    for name, exchanges in scenarios.items():
        for page in map(shorten_page, exchanges):
            if page not in pages:
                pages.append(page)
            numbers.setdefault(name, []).append(pages.index(page))
    return {"pages": pages, "scenarios": numbers}


def shorten_page(page: dict[str, Any]) -> dict[str, Any]:
    """A long stream without its middle; JSON without unknown prices and the values that differ at each request."""
    if "event-stream" not in page["type"]:
        return {**page, "body": VOLATILE.sub("", page["body"])}
    events = page["body"].split("\n\n")
    first, last = KEPT_EVENTS
    kept = events if len(events) <= first + last else [*events[:first], *events[-last:]]
    return {**page, "body": "\n\n".join(kept)}


def load_model_server(name: str) -> dict[str, Any]:
    kept = json.loads((RECORDED / f"model-{name}.json").read_text(encoding="utf-8"))
    scenarios = {key: [kept["pages"][number] for number in numbers] for key, numbers in kept["scenarios"].items()}
    return {**kept, "scenarios": scenarios}


def drop_unread(exchange: dict[str, Any]) -> dict[str, Any]:
    """A list of tools without what no client of ours reads."""
    for tool in exchange["answer"].get("result", {}).get("tools", ()):
        for key in UNREAD_TOOL_KEYS:
            tool.pop(key, None)
    return exchange
