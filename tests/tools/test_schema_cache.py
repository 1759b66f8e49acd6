"""What is told of our tools is remembered, and counts only while all it came from is what it was."""

import json
import sys
from pathlib import Path
from threading import Event, Thread
from types import ModuleType
from typing import Any

import pytest

from ollm.tools.catalogue import TOOLS, describe_tools

PLACES = {name: place for name, (place, _) in TOOLS.items()}


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "home" / "cache" / "tools.json"


def remembered(memory: Path) -> dict[str, Any]:
    memory.parent.parent.mkdir(exist_ok=True)
    describe_tools(PLACES, memory)
    found: dict[str, Any] = json.loads(memory.read_text())
    found["tools"][0]["description"] = "from memory"
    return found


def first_description(memory: Path, document: object) -> str:
    memory.write_text(json.dumps(document))
    return describe_tools(PLACES, memory)[0].description


def test_what_is_remembered_is_not_worked_out_again(memory: Path) -> None:
    assert first_description(memory, remembered(memory)) == "from memory"


@pytest.mark.parametrize(
    "file", ["tools/read_file.py", "domain/tools.py", "services/edit_ledger.py", "config/settings.py"]
)
@pytest.mark.parametrize("place", [1, 2])
def test_a_changed_file_of_any_package_means_working_it_out(memory: Path, file: str, place: int) -> None:
    document = remembered(memory)
    next(entry for entry in document["stamp"] if entry[0] == file)[place] += 1

    assert first_description(memory, document) != "from memory"
    assert "from memory" not in memory.read_text()


@pytest.mark.parametrize("text", ["", "[]", '{"stamp": 1}', "\ud800", '{"tools": [], "stamp": [["\\u0000", 1, 1]]}'])
def test_a_memory_that_makes_no_sense_is_not_used(memory: Path, text: str) -> None:
    remembered(memory)
    memory.write_text(text, errors="surrogatepass")

    assert len(describe_tools(PLACES, memory)) == len(PLACES)


def test_tools_are_described_while_another_thread_imports(memory: Path) -> None:
    done = Event()

    def keep_importing() -> None:
        while not done.is_set():
            names = [f"made_up_{number}" for number in range(500)]
            sys.modules.update({name: ModuleType(name) for name in names})
            for name in names:
                del sys.modules[name]

    switching, other = sys.getswitchinterval(), Thread(target=keep_importing)
    sys.setswitchinterval(1e-6)
    other.start()
    try:
        for _ in range(10):
            memory.unlink(missing_ok=True)
            assert len(describe_tools(PLACES, memory)) == len(PLACES)
    finally:
        done.set()
        other.join()
        sys.setswitchinterval(switching)
