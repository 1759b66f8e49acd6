"""`/mcp`: the servers of a conversation and their prompts."""

from types import SimpleNamespace
from typing import Any

import pytest

from ollm.domain.errors import UsageError
from ollm.runtime.commands.mcp import describe_offers, describe_state, mcp, parse_pairs, render_state, resource


def state(*, failure: str = "", connected: bool = False, catalogue: Any = None) -> Any:
    return SimpleNamespace(
        server=SimpleNamespace(name="files"), failure=failure, connected=connected, catalogue=catalogue
    )


def catalogue(*tools: str, prompts: tuple[str, ...] = (), resources: bool = False) -> Any:
    return SimpleNamespace(
        tools=[SimpleNamespace(name=name) for name in tools],
        prompts=[SimpleNamespace(name=name) for name in prompts],
        resources=resources,
    )


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", {}),
        ("a=1 b=2", {"a": "1", "b": "2"}),
        ("a='two words' b=", {"a": "two words", "b": ""}),
        ("a=b=c", {"a": "b=c"}),
    ],
)
def test_arguments_of_a_prompt_are_pairs_quoted_as_in_a_shell(text: str, pairs: dict[str, str]) -> None:
    assert parse_pairs(text) == pairs


@pytest.mark.parametrize(("text", "told"), [("a", "no argument to go to"), ("a='x", "The arguments cannot be read: ")])
def test_other_arguments_are_told(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_pairs(text)


def test_the_state_of_a_server_is_one_line() -> None:
    assert describe_state(state(failure="it crashed", connected=True)) == "it crashed"
    assert describe_state(state(connected=True)) == "running"
    assert describe_state(state()) == "starts on demand"


@pytest.mark.parametrize(
    ("found", "offers"),
    [
        (None, "not connected yet"),
        (catalogue(), "nothing"),
        (catalogue("a", "b"), "a, 1 more by find_tool (no room in the window, or denied)"),
        (catalogue("a", prompts=("p",), resources=True), "a, resources, /files:p"),
    ],
)
def test_what_a_server_offers_is_listed(found: Any, offers: str) -> None:
    assert describe_offers(state(catalogue=found), {"a"}) == offers


def test_the_same_for_programs() -> None:
    assert render_state(state(failure="x"), set()) == {
        "name": "files",
        "connected": False,
        "failure": "x",
        "tools": [],
        "hidden": [],
        "prompts": [],
        "resources": False,
    }
    found = render_state(state(connected=True, catalogue=catalogue("a", "b", prompts=("p",), resources=True)), {"a"})
    assert (found["tools"], found["hidden"], found["prompts"], found["resources"]) == (["a", "b"], ["b"], ["p"], True)
    assert found["failure"] is None


async def test_without_servers_it_says_how_to_add_one() -> None:
    reply = await mcp(SimpleNamespace(mcp=None), "")  # type: ignore[arg-type]

    assert (reply.text, reply.data) == ("No MCP servers configured. Add one with `ollm mcp add`.", [])


async def test_a_prompt_is_sent_as_the_next_message() -> None:
    asked: list[Any] = []

    class Servers:
        def list_prompt_arguments(self, name: str, prompt: str) -> tuple[str, ...]:
            return ("path", "depth")

        def list_states(self) -> list[Any]:
            return [state(connected=True, catalogue=catalogue("a"))]

        async def get_prompt(self, *wanted: Any) -> str:
            asked.append(wanted)
            return "the text"

    talk: Any = SimpleNamespace(mcp=Servers(), prompt=SimpleNamespace(tools=[SimpleNamespace(name="a")]))
    assert "| files | running | a |" in (await mcp(talk, "")).text
    reply = await mcp(talk, "files review path=a.py depth=2")
    assert (reply.follow_up, reply.argument) == ("send", "the text")
    assert asked == [("files", "review", {"path": "a.py", "depth": "2"})]
    with pytest.raises(UsageError, match="Usage: /mcp"):
        await mcp(talk, "files")


class Servers:
    def list_prompt_arguments(self, server: str, prompt: str) -> list[str]:
        return ["first", "second"]

    async def get_prompt(self, server: str, prompt: str, values: dict[str, str]) -> str:
        return f"{server} {prompt} {values}"

    def list_resources(self) -> list[str]:
        return ["files:a.txt"]

    async def read_resource(self, server: str, name: str) -> str:
        return f"{server} {name}"


async def test_a_prompt_is_sent_with_its_values_and_a_resource_shown() -> None:
    talk: Any = SimpleNamespace(mcp=Servers())

    for words, values in (("", {}), (" x", {"first": "x"}), (" x y", {"first": "x", "second": "y"})):
        reply = await mcp(talk, f"files hello{words}")
        assert (reply.follow_up, reply.argument) == ("send", f"files hello {values}")
    for short in ("files", " files "):
        with pytest.raises(UsageError, match="Usage: /mcp"):
            await mcp(talk, short)
        with pytest.raises(UsageError, match="Usage: /resource"):
            await resource(talk, short)
    listed = await resource(talk, "")
    assert (listed.text, listed.data) == (
        "Name one in a message to attach it:\n\n- @files:a.txt",
        ["files:a.txt"],
    )
    assert (await resource(talk, "files a b")).data == "files a b"
    talk.mcp.list_resources = list
    assert (await resource(talk, "")).text == "No resources known yet."
    none: Any = SimpleNamespace(mcp=None)
    for run in (mcp, resource):
        assert (await run(none, "files hello")).text == "No MCP servers configured. Add one with `ollm mcp add`."
