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


def test_entries_of_claude_code_are_read() -> None:
    entry = {"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "c", "timeout": 5, "other": 1}]}

    assert read_one(entry, "PreToolUse") == Hook(
        event="before-tool", command="c", timeout=5.0, matcher="Bash|Edit", claude=True
    )
    ours = read_one("c", "Stop")
    assert ours == Hook(event="after-turn", command="c", claude=True)
    assert read_one("c", "before-turn") == Hook(event="before-turn", command="c", claude=False)


@pytest.mark.parametrize("sandbox", [False, "off"])
def test_only_the_users_own_file_lets_a_hook_out_of_the_box(sandbox: object) -> None:
    entry = {"command": "c", "sandbox": sandbox}
    configured = {"before-tool": [entry, "d"]}

    assert [hook.boxed for hook in read_hooks(configured)[0]] == [False, True]
    assert [hook.boxed for hook in read_hooks(configured, {"before-tool": [entry]})[0]] == [False, True]
    assert [hook.boxed for hook in read_hooks(configured, {})[0]] == [True, True]
    assert [hook.boxed for hook in read_hooks(configured, {"after-tool": [entry]})[0]] == [True, True]
