"""Paths that stay a question whatever rules, grants and approval levels say."""

from typing import Any

import pytest

from ollm.domain.tools import PolicyRequest
from ollm.policy.grants import GrantBook
from tests.covers import covers
from tests.policy.conftest import Place, rule, shell
from tests.policy.path_table import PATHS

SETTINGS: list[dict[str, Any]] = [{}, {"approval": "yolo"}, {"grants": GrantBook(granted=["write_file", "shell"])}]
ALLOW = [{"tool": "read_file", "action": "allow"}, {"tool": "write_file", "action": "allow"}]


@covers("T3.8")
@pytest.mark.parametrize(("path", "reading", "writing"), PATHS)
def test_paths_by_table(place: Place, path: str, reading: str, writing: str):
    for settings in SETTINGS:
        engine = place.engine(ALLOW, **settings)
        assert engine.evaluate(PolicyRequest(tool="read_file", params={"path": path})).decision == reading
        verdict = engine.evaluate(PolicyRequest(tool="write_file", params={"path": path}))
        assert verdict.decision == writing
        assert verdict.locked == (writing != "allow")


@pytest.mark.parametrize(
    ("path", "reading", "writing"), [row for row in PATHS if row[0] not in ("-rf", ".env ", "~", "~/x")]
)
def test_the_shell_finds_the_same_paths_protected(place: Place, path: str, reading: str, writing: str):
    import shlex

    engine = place.engine([rule("allow", "program", ["cat", "cp", "tee", "touch", "mv", "ln"])], approval="yolo")
    word = shlex.quote(path)

    assert shell(engine, f"cat {word}").decision == reading
    for command in (f"cat a > {word}", f"cp a {word}", f"tee {word}", f"touch {word}", f"mv a {word}", f"ln a {word}"):
        verdict = shell(engine, command)
        assert verdict.decision == ("ask" if writing != "allow" else "allow"), command
        assert verdict.locked == (writing != "allow"), command


@pytest.mark.parametrize("path", ["~/.ssh/id_rsa", "~/.ollm/config.yaml", "$HOME/.ssh/config", "~/.bashrc", "~"])
def test_home_is_outside_and_its_secrets_are_never_read_unasked(place: Place, path: str):
    engine = place.engine([{"tool": "shell", "action": "allow"}], approval="yolo")

    assert shell(engine, f"cat {path}").locked
    assert shell(engine, f"echo x > {path}").locked


def test_there_are_as_many_paths_as_promised():
    assert len(PATHS) >= 60
