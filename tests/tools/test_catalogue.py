"""Every tool of ours, with what it needs: the one place that lists them."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from ollm.tools.catalogue import TOOLS, build_registry, describe_catalogue, describe_classes, list_categories
from tests.covers import covers


def test_every_tool_is_described_and_has_a_category() -> None:
    assert sorted(found.name for found in describe_catalogue()) == sorted(TOOLS)
    categories = list_categories()
    assert categories.keys() == TOOLS.keys()
    assert {name for name, kind in categories.items() if kind == "write"} == {"write_file", "edit_file"}
    assert (categories["shell"], categories["web_fetch"], categories["write_todos"]) == ("run", "web", "notes")


def test_the_written_descriptions_are_what_the_classes_say() -> None:
    assert describe_catalogue() == describe_classes(), "run `make format`"


class Services:
    """Remembers which services were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return SimpleNamespace(get=lambda: "pages")


ARGUMENTS: dict[str, dict[str, Any]] = {
    "diagnostics": {"paths": ["a", "b"]},
    "read_file": {"path": "a"},
    "read_many_files": {"paths": ["a"]},
    "write_file": {"path": "a", "content": "x"},
    "edit_file": {"path": "a", "edits": [{"target": "x", "replacement": "y"}]},
    "glob": {"pattern": "*"},
    "grep": {"pattern": "x"},
    "ls": {},
    "outline": {"path": "a"},
    "task": {"prompt": "x"},
    "memory": {"action": "list"},
    "write_todos": {"action": "list"},
    "goal": {"action": "set", "text": "x"},
    "recall": {"query": "x"},
    "web_fetch": {"url": "https://example.org"},
    "web_search": {"query": "x"},
    "shell": {"command": "true"},
}


def test_describing_them_imports_no_tool() -> None:
    script = (
        "import sys; from ollm.tools.catalogue import describe_catalogue; describe_catalogue(); "
        "print([name for name in sys.modules if name in ('ollm.tools.shell', 'ollm.tools.grep', 'ollm.tools.web_fetch')])"
    )

    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


TOUCHED: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "read_file": ({"path": "a"}, [("a", "read")]),
    "read_many_files": ({"paths": ["a", "b/*.py"]}, [("a", "read"), ("b/*.py", "read")]),
    "write_file": ({"path": "a", "content": ""}, [("a", "write")]),
    "edit_file": ({"path": "a", "edits": [{"target": "x", "replacement": "y"}]}, [("a", "write")]),
    "glob": ({"pattern": "*", "path": "d"}, [("d", "read")]),
    "grep": ({"pattern": "x", "path": "d"}, [("d", "read")]),
    "diagnostics": ({"paths": ["a", "b"]}, [("a", "read"), ("b", "read")]),
    "ls": ({"path": "d"}, [("d", "read")]),
    "outline": ({"path": "d"}, [("d", "read")]),
    "task": ({"prompt": "x", "files": ["a", "b"]}, [("a", "read"), ("b", "read")]),
    "shell": ({"command": "ls", "cwd": "d"}, [("d", "run")]),
    "web_fetch": ({"url": "https://a.test"}, [("https://a.test", "read")]),
}


@covers("T10.3")
@pytest.mark.parametrize("name", TOOLS)
def test_every_call_names_what_it_touches(name: str) -> None:
    arguments, touched = TOUCHED.get(name, (ARGUMENTS[name], []))
    services = Services()
    spec = build_registry(services).get(name)  # type: ignore[arg-type]
    assert spec is not None
    assert services.asked == []

    assert [(place.target, place.access) for place in spec.parse(arguments).tool.locations()] == touched
