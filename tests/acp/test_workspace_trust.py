"""Permission and trust questions in an editor."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from ollm.acp.permissions import MAX_SHOWN_FILES, build_options, build_trust_question, read_answer
from ollm.domain.tools import ConfirmationDetails, Risk
from ollm.policy.trust import TrustState
from tests.acp.editor import RunningEditor, editing


def prepare(directory: Path) -> None:
    (directory / "project").mkdir()
    (directory / "project" / "AGENTS.md").write_text("Always answer in verse.")


async def talk(editor: RunningEditor, times: int = 1) -> None:
    session = await editor.open()
    for _ in range(times):
        await editor.say(session, "hi")


@pytest.mark.parametrize(("chosen", "asked", "verse"), [("trust", 1, True), ("later", 2, False), ("never", 1, False)])
async def test_the_first_message_asks_and_the_answer_counts_at_once(
    tmp_path: Path, chosen: str, asked: int, verse: bool
) -> None:
    prepare(tmp_path)
    async with editing(tmp_path, ["One.", "Two.", "Three."], chosen) as (editor, server):
        await talk(editor, 2)
        assert len(editor.client.asked) == 1
        await talk(editor)

    assert len(editor.client.asked) == asked
    call, options = editor.client.asked[0]
    assert call.title == f"Trust {editor.workspace}?"
    assert "AGENTS.md" in call.content[0].content.text
    assert [option.kind for option in options] == ["allow_always", "reject_once", "reject_always"]
    assert [("verse" in str(chat)) for chat in server.chats] == [verse] * 3
    assert "resumed" not in str(server.chats[0]["messages"])  # nothing was said before
    assert "Resumed" not in editor.client.said("agent_thought_chunk")


async def test_a_yes_keeps_the_session_and_what_was_chosen_in_it(tmp_path: Path) -> None:
    prepare(tmp_path)
    async with editing(tmp_path, ["One.", "Two."], "trust") as (editor, _):
        session = await editor.open()
        await editor.agent.set_session_mode(session_id=session, mode_id="accept-edits")
        await editor.agent.set_config_option(session_id=session, config_id="mode", value="debug")
        await editor.say(session, "hi")
        await editor.say(session, "/status")
        listed = (await editor.agent.list_sessions()).sessions

    assert [one.session_id for one in listed] == [session]
    assert {each["sessionId"] for each in editor.client.updates} == {session}
    said = editor.client.said()
    assert "accept-edits" in said
    assert "debug" in said


async def test_a_stop_withdraws_the_question_and_nothing_is_sent_to_the_model(tmp_path: Path) -> None:
    prepare(tmp_path)
    async with editing(tmp_path, ["Prose."], "wait") as (editor, server):
        session = await editor.open()
        saying = asyncio.create_task(editor.say(session, "hi"))
        await editor.client.asking.wait()
        await editor.agent.cancel(session_id=session)

        assert (await saying).stop_reason == "cancelled"
        assert (await editor.say(session, "again")).stop_reason == "end_turn"

    assert len(server.chats) == 1


async def test_commands_and_an_own_workspace_ask_nothing(tmp_path: Path) -> None:
    async with editing(tmp_path, ["One."], "trust") as (editor, _):
        await talk(editor)
        (editor.workspace / "AGENTS.md").write_text("Verse.")
        await editor.say(await editor.open(), "/status")

    assert editor.client.asked == []


def test_a_change_is_named_and_many_files_are_counted() -> None:
    changed = TrustState(workspace="/w", trusted=False, known=True, changed=("AGENTS.md",), added=("a\x1b",))
    many = TrustState(workspace="/w", trusted=False, files=tuple(f"f{n}" for n in range(MAX_SHOWN_FILES + 3)))

    assert "AGENTS.md (changed)" in str(build_trust_question(changed))
    assert "\x1b" not in build_trust_question(changed)["content"][0]["content"]["text"]
    assert "and 3 more" in str(build_trust_question(many))


DETAILS = ConfirmationDetails(
    call_id="c1",
    tool="shell",
    description="npm test",
    risk=Risk.HIGH,
    reason="may modify files",
    grant="shell:npm test",
    prefix="shell:npm",
)


def test_what_is_locked_can_only_be_allowed_once() -> None:
    locked = msgspec.structs.replace(DETAILS, locked=True)

    assert [option["optionId"] for option in build_options(locked)] == ["once", "reject"]
    assert not read_answer("always", locked).approved
