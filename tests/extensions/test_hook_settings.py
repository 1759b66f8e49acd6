"""Hooks in the settings."""

import pytest

from ollm.extensions.hook_settings import Hook, read_hooks


def test_hooks_that_cannot_be_read_are_named() -> None:
    hooks, problems = read_hooks(
        {
            "before-tool": [{"command": "check", "tools": "shell"}, {"command": ""}, {"comand": "x"}, 7],
            "after-lunch": "x",
            "after-turn": {"command": "x", "timeout": -1},
        }
    )

    assert hooks == (Hook(event="before-tool", command="check", tools=("shell",)),)
    assert [problem.partition(":")[0] for problem in problems] == [
        "hooks.before-tool[1]", "hooks.before-tool[2]", "hooks.before-tool[3]", "hooks.after-lunch", "hooks.after-turn[0]",
    ]  # fmt: skip


def read_one(entry: object, event: str = "before-tool") -> Hook | str:
    hooks, problems = read_hooks({event: [entry]})
    return hooks[0] if hooks else problems[0]


def test_a_hook_is_a_command_or_a_mapping_with_one() -> None:
    assert read_one("check.sh") == Hook(event="before-tool", command="check.sh")
    assert read_hooks({"before-tool": "check.sh"})[0] == (Hook(event="before-tool", command="check.sh"),)
    full = {"command": "c", "tools": ["shell", "mcp*"], "required": True, "timeout": 600, "sandbox": "off"}
    assert read_one(full) == Hook(
        event="before-tool", command="c", tools=("shell", "mcp*"), required=True, timeout=600.0, boxed=False
    )
    assert read_one({"command": "c", "tools": "shell"}) == Hook(event="before-tool", command="c", tools=("shell",))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (5, "expected a command, or a mapping with one"),
        ({}, "command: expected text"),
        ({"command": " "}, "command: expected text"),
        ({"command": 5}, "command: expected text"),
        ({"command": "c", "when": 1}, "unknown key when; available: command, required, sandbox, timeout, tools"),
        ({"command": "c", "tools": 5}, "tools: expected a list of names"),
        ({"command": "c", "tools": [5]}, "tools: expected a list of names"),
        ({"command": "c", "timeout": 0}, "timeout: expected seconds, at most 600"),
        ({"command": "c", "timeout": 601}, "timeout: expected seconds, at most 600"),
        ({"command": "c", "timeout": True}, "timeout: expected seconds, at most 600"),
        ({"command": "c", "timeout": "5"}, "timeout: expected seconds, at most 600"),
        ({"command": "c", "sandbox": "maybe"}, "sandbox: expected off"),
        ({"matcher": 5, "hooks": []}, "expected a matcher and a list of hooks"),
        ({"hooks": "x"}, "expected a matcher and a list of hooks"),
        ({"hooks": [{"type": "prompt"}]}, "only hooks of type command are run"),
        ({"hooks": ["x"]}, "only hooks of type command are run"),
        ({"hooks": [{"type": "command"}]}, "command: expected text"),
    ],
)
def test_each_mistake_has_its_sentence(entry: object, said: str) -> None:
    assert read_one(entry) == f"hooks.before-tool[0]: {said}"


def test_entries_of_claude_code_are_read() -> None:
    entry = {"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "c", "timeout": 5, "other": 1}]}

    assert read_one(entry, "PreToolUse") == Hook(
        event="before-tool", command="c", timeout=5.0, matcher="Bash|Edit", claude=True
    )
    ours = read_one("c", "Stop")
    assert ours == Hook(event="after-turn", command="c", claude=True)
    assert read_one("c", "before-turn") == Hook(event="before-turn", command="c", claude=False)


def test_an_unknown_event_is_told() -> None:
    hooks, (problem,) = read_hooks({"sometimes": ["c"], "after-tool": ["c"]})

    assert problem.startswith("hooks.sometimes: unknown event; available: session-start, session-end, before-turn,")
    assert len(hooks) == 1


@pytest.mark.parametrize("sandbox", [False, "off"])
def test_only_the_users_own_file_lets_a_hook_out_of_the_box(sandbox: object) -> None:
    entry = {"command": "c", "sandbox": sandbox}
    configured = {"before-tool": [entry, "d"]}

    assert [hook.boxed for hook in read_hooks(configured)[0]] == [False, True]
    assert [hook.boxed for hook in read_hooks(configured, {"before-tool": [entry]})[0]] == [False, True]
    assert [hook.boxed for hook in read_hooks(configured, {})[0]] == [True, True]
    assert [hook.boxed for hook in read_hooks(configured, {"after-tool": [entry]})[0]] == [True, True]


@pytest.mark.parametrize("sandbox", [None, True, "on"])
def test_anything_else_stays_in_the_box(sandbox: object) -> None:
    found = read_one({"command": "c", "sandbox": sandbox})

    assert isinstance(found, Hook)
    assert found.boxed
    assert not found.required
    assert found.timeout == 30.0


@pytest.mark.parametrize(
    ("tools", "tool", "applies"),
    [
        ((), "shell", True),
        (("shell",), "shell", True),
        (("sh*",), "shell", True),
        (("ls",), "shell", False),
        (("ls",), None, True),
    ],
)
def test_a_hook_is_for_the_tools_it_names(tools: tuple[str, ...], tool: str | None, applies: bool) -> None:
    assert Hook(event="before-tool", command="c", tools=tools).applies_to(tool) is applies
