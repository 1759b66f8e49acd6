"""`mcpServers` in the settings."""

import pytest

from ollm.extensions.mcp.settings import McpServer, expand_variables, read_servers


@pytest.mark.parametrize(
    ("configured", "said"),
    [
        ({"a b": {"command": "x"}}, "mcpServers.a b: expected a name of"),
        ({"a__b": {"command": "x"}}, "a name of"),
        ({"a": "x"}, "a mapping with command or url"),
        ({"a": {}}, "either command or url"),
        ({"a": {"command": "x", "url": "http://x"}}, "either command or url"),
        ({"a": {"command": ""}}, "command: expected"),
        ({"a": {"url": "file:///x"}}, "url: expected"),
        ({"a": {"command": "x", "args": "y"}}, "args: expected"),
        ({"a": {"command": "x", "env": ["y"]}}, "env: expected a mapping"),
        ({"a": {"command": "x", "startTimeout": -1}}, "startTimeout: expected"),
        ({"a": {"command": "x", "include": "y"}}, "include: expected"),
        ({"a": {"command": "x", "timeout": 0}}, "timeout: expected"),
        ({"a": {"command": "x", "type": "sse"}}, "type: sse needs a url"),
    ],
)
def test_a_mistake_in_a_server_is_told_and_the_others_stand(configured: dict[str, object], said: str) -> None:
    servers, problems = read_servers({**configured, "good": {"command": "y", "args": [1], "env": {"A": 2}}})

    assert [(server.name, server.args, server.env) for server in servers] == [("good", ("1",), {"A": "2"})]
    assert len(problems) == 1
    assert said in problems[0]


def read_one(entry: object, name: str = "s") -> McpServer | str:
    servers, problems = read_servers({name: entry})
    return servers[0] if servers else problems[0]


@pytest.mark.parametrize("key", ["url", "httpUrl", "serverUrl"])
def test_an_address_has_many_names(key: str) -> None:
    found = read_one({key: "https://x/mcp", "headers": {"K": 1}})

    assert found == McpServer(name="s", url="https://x/mcp", headers={"K": "1"})


@pytest.mark.parametrize(
    ("entry", "disabled", "boxed"),
    [
        ({}, False, True),
        ({"disabled": True}, True, True),
        ({"disabled": "yes"}, False, True),
        ({"enabled": False}, True, True),
        ({"enabled": True}, False, True),
        ({"sandbox": True}, False, True),
        ({"sandbox": "on"}, False, True),
        ({"sandbox": False}, False, False),
    ],
)
def test_a_server_is_on_and_boxed_unless_its_entry_says_otherwise(
    entry: dict[str, object], disabled: bool, boxed: bool
) -> None:
    found = read_one({"command": "run", **entry})

    assert isinstance(found, McpServer)
    assert (found.disabled, found.boxed) == (disabled, boxed)
    assert (found.timeout, found.start_timeout) == (120.0, 30.0)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${A}", "1"),
        ("x${A}y${A}", "x1y1"),
        ("${B}", "${B}"),
        ("${B:-or}", "or"),
        ("${B:-}", ""),
        ("${A:-or}", "1"),
        ("$A ${1} ${}", "$A ${1} ${}"),
    ],
)
def test_variables_are_replaced_by_what_they_hold_or_by_what_stands_beside(text: str, filled: str) -> None:
    assert expand_variables(text, {"A": "1"}) == filled
