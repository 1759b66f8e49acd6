"""Offers of an MCP server and their cache."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ollm.extensions.mcp.catalogue import Catalogue, CatalogueFile, make_tool_name, select_tools
from ollm.extensions.mcp.settings import McpServer
from tests.cli.running import running
from tests.extensions.raw_servers import configure, raw_entry


def test_two_odd_names_do_not_become_one() -> None:
    assert make_tool_name("s", "a b") != make_tool_name("s", "a_b") == "s__a_b"
    assert make_tool_name("s", "x" * 200) != make_tool_name("s", "x" * 201)


def offered(name: str, description: str = "Does it.", schema: object = None) -> SimpleNamespace:
    parameters = {"type": "object"} if schema is None else schema
    return SimpleNamespace(name=name, description=description, title=None, input_schema=parameters)


SERVER = McpServer(name="notes", command="run")


@pytest.mark.parametrize("tool", ["", "a" * 58, "add it", "ädd", "a.b", "\ud800"])
def test_any_other_name_is_mended_and_ends_in_its_hash(tool: str) -> None:
    name = make_tool_name("notes", tool)

    assert re.fullmatch(r"notes__[A-Za-z0-9_-]*_[0-9a-f]{8}", name)
    assert len(name) <= 64


def test_what_cannot_be_used_is_left_out_with_the_reason() -> None:
    taken, left_out = select_tools(SERVER, [offered("add"), offered("add"), offered("bad", schema=[])])

    assert len(taken) == 1
    assert left_out == (
        "add of the MCP server notes was skipped: its name is already taken.",
        "bad of the MCP server notes was skipped: its parameters are not an object.",
    )


def test_only_so_many_tools_are_taken_and_only_those_that_are_wanted() -> None:
    many = [offered(f"t{n}") for n in range(130)]
    taken, left_out = select_tools(SERVER, many)
    assert len(taken) == 128
    assert left_out == ("The MCP server notes has more than 128 tools; the rest are skipped.",)
    assert select_tools(SERVER, many[:128])[1] == ()
    chosen = McpServer(name="notes", command="run", include=("t1",))
    assert [tool.remote for tool in select_tools(chosen, many)[0]] == ["t1"]


class Hour:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_what_was_offered_is_kept_and_grows_old(tmp_path: Path) -> None:
    clock = Hour()
    kept = CatalogueFile(tmp_path / "cache" / "mcp.json", clock)
    assert kept.get(SERVER) is None
    found = Catalogue(instructions="Be kind.", timestamp="2026-01-01T12:00:00.000Z")
    kept.put(SERVER, found)

    assert kept.get(SERVER) == found
    assert kept.is_fresh(found)
    clock.now += timedelta(seconds=3599)
    assert kept.is_fresh(found)
    clock.now += timedelta(seconds=1)
    assert not kept.is_fresh(found)
    clock.now = datetime(2025, 1, 1, tzinfo=UTC)
    assert not kept.is_fresh(found)
    assert not kept.is_fresh(Catalogue(timestamp="never"))


def test_a_server_that_is_configured_otherwise_is_another_one(tmp_path: Path) -> None:
    kept = CatalogueFile(tmp_path / "mcp.json")
    other, changed = McpServer(name="other", command="run"), McpServer(name="notes", command="run", args=("x",))
    kept.put(SERVER, Catalogue(instructions="1"))
    kept.put(other, Catalogue(instructions="2"))
    assert kept.get(changed) is None
    kept.put(changed, Catalogue(instructions="3"))

    assert kept.get(SERVER) is None
    found = [kept.get(server) for server in (changed, other)]
    assert [each.instructions for each in found if each] == ["3", "2"]


@pytest.mark.parametrize("data", [b"", b"not json", b"[]", b'{"a": 5}'])
def test_a_damaged_file_is_no_file(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(data)

    assert CatalogueFile(file).get(SERVER) is None


def test_no_value_of_a_variable_is_in_the_file(tmp_path: Path) -> None:
    CatalogueFile(tmp_path / "m").put(McpServer(name="s", command="r", env={"KEY": "sk-secret"}), Catalogue())

    assert b"sk-secret" not in (tmp_path / "m").read_bytes()


@pytest.mark.parametrize(
    ("cursors", "said"),
    [
        ([7], ""),
        (["same"], "The list of tools of the MCP server raw starts over instead of ending"),
        ([str(number) for number in range(40)], "The list of tools of the MCP server raw has more than 20 pages"),
    ],
)
async def test_a_list_that_does_not_end_is_used_as_far_as_it_goes_and_said(
    tmp_path: Path, cursors: list[Any], said: str
) -> None:
    async with running(tmp_path, []) as runner:
        configure(runner, mcpServers={"raw": raw_entry(tmp_path, "raw", tools=[{"name": "one"}], cursors=cursors)})
        done = await runner.run("mcp", "test")

    assert (done.code, "raw__one" in done.out) == (0, True), done.out
    assert said in done.out
    assert ("The list of tools" in done.out) == bool(said)
