"""`ollm trust`, what a trusted workspace may do, and the question about an unknown one."""

from pathlib import Path

from ollm.cli.trust import format_question
from ollm.policy.trust import TrustState
from tests.cli.inside import Inside
from tests.cli.policy.samples import check, run


def test_a_trusted_workspace_may_forbid_but_never_allow(place: Path):
    (place / "work/.ollm").mkdir()
    (place / "work/.ollm/config.yaml").write_text(
        "policy:\n  rules:\n    - {tool: shell, action: allow}\n    - {tool: glob, action: deny}\n"
    )
    run(place, "trust")

    assert check(place, "make")["decision"] == "ask"
    assert run(place, "policy", "check", "glob", "--param", "pattern=*").startswith("deny")


def test_a_workspace_is_trusted_with_its_files_and_untrusted_again(inside: Inside) -> None:
    assert inside.read("trust", "--list") == "No trusted workspaces.\n"
    assert inside.read("trust") == f"Trusted {inside.workspace}; it contains no agent files.\n"
    assert inside.read("trust") == f"{inside.workspace} is already trusted.\n"
    (inside.workspace / "AGENTS.md").write_text("one")
    (inside.workspace / ".mcp.json").write_text("{}")
    (inside.workspace / "CLAUDE.md").write_text("not used beside AGENTS.md")
    assert inside.read("trust") == f"Trusted {inside.workspace} with:\n  .mcp.json (new)\n  AGENTS.md (new)\n"
    (inside.workspace / "AGENTS.md").write_text("two")
    (inside.workspace / ".mcp.json").unlink()
    (listed,) = inside.read_json("trust", "--list")
    assert (listed["workspace"], listed["trusted"]) == (str(inside.workspace), False)
    assert inside.read("trust", "--list").splitlines()[1].endswith("changed since")
    assert inside.read("trust") == (f"Trusted {inside.workspace} with:\n  AGENTS.md (changed)\n  .mcp.json (gone)\n")
    assert inside.read("trust", "--list").splitlines()[1].split()[-1] == "yes"
    assert inside.read_json("trust")["trusted"]
    assert inside.read("trust", "--revoke") == f"{inside.workspace}: no longer trusted.\n"
    assert "was not trusted." in inside.fail("trust", "--revoke", code=1)
    inside.read("trust")
    assert inside.read_json("trust", "--revoke") == {"workspace": str(inside.workspace), "trusted": False}
    assert inside.read("trust", "--list") == "No trusted workspaces.\n"


def test_the_list_stands_alone(inside: Inside) -> None:
    for more in ("--revoke", "."):
        assert "--list cannot be combined with other options." in inside.fail("trust", "--list", more, code=2)


def test_names_cannot_drive_the_terminal() -> None:
    shown = format_question(TrustState(workspace="/w\x1b[2J", trusted=False, files=("a\nb",)))

    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 2
