"""Commands that only look, as tools."""

import pytest

from ollm.providers.base import CallPiece
from ollm.providers.text_calls.reading_commands import translate_command


@pytest.mark.parametrize(
    ("command", "name", "arguments"),
    [
        ("cat a.py", "read_file", {"path": "a.py"}),
        ("ls -la src", "ls", {"path": "src"}),
        ("ls", "ls", {"path": "."}),
        ("grep -rn LIMIT .", "grep", {"pattern": "LIMIT", "path": "."}),
        ("rm a.py", "shell", {"command": "rm a.py"}),
        ("cat a.py > b.py", "shell", {"command": "cat a.py > b.py"}),
        ("cat 'a", "shell", {"command": "cat 'a"}),
    ],
)
def test_only_plain_looks_become_tools(command: str, name: str, arguments: dict[str, str]) -> None:
    assert translate_command(command) == CallPiece(name, arguments)
