"""One session in an editor: a prompt, a question answered each way, a stop, a command, options."""

import asyncio
import time
from pathlib import Path

import pytest
from acp import RequestError
from acp import schema as wire

from tests.acp.editor import EDIT, WAIT_SECONDS, editing
from tests.acp.test_client_files import prepare_file
from tests.servers.answers import Answer

RUN = Answer(calls=[("shell", {"command": "touch made.txt"})])


async def test_a_prompt_is_answered_and_the_editor_is_told_how_much_was_used(tmp_path: Path) -> None:
    async with editing(tmp_path, ["Hello there."]) as (editor, _):
        session = await editor.open()
        ended = await editor.say(session, "hi")

    assert editor.client.said() == "Hello there."
    assert (ended.stop_reason, ended.usage.input_tokens, ended.usage.output_tokens) == ("end_turn", 20, 5)
    assert {"usage_update", "session_info_update", "available_commands_update"} <= editor.client.kinds()


async def test_an_edit_is_asked_about_with_old_and_new_text_and_made_when_allowed(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    async with editing(tmp_path, [EDIT, "Done."], "once") as (editor, _):
        await editor.say(await editor.open(), "change it")

    call, options = editor.client.asked[0]
    change = call.content[0]
    assert (change.path, change.old_text, change.new_text) == (str(file), "one\ntwo\n", "one\nthree\n")
    assert [option.option_id for option in options] == ["once", "session", "always", "everywhere", "reject"]
    assert file.read_text() == "one\nthree\n"
    (shown,) = editor.client.calls().values()
    assert (shown["kind"], shown["status"], shown["locations"]) == ("edit", "completed", [{"path": str(file)}])
    assert shown["content"][0]["newText"] == "one\nthree\n"


@pytest.mark.parametrize("chosen", ["reject", None, "no-such-option"])
async def test_an_edit_that_is_refused_is_not_made(tmp_path: Path, chosen: str | None) -> None:
    file = prepare_file(tmp_path)
    async with editing(tmp_path, [EDIT, "I see."], chosen) as (editor, server):
        ended = await editor.say(await editor.open(), "change it")

    assert file.read_text() == "one\ntwo\n"
    assert ended.stop_reason == "end_turn"
    assert [call["status"] for call in editor.client.calls().values()] == ["failed"]
    assert "declined" in str(server.chats[-1])


async def test_what_is_allowed_for_the_session_is_not_asked_again(tmp_path: Path) -> None:
    async with editing(tmp_path, [RUN, RUN, "Done."], "session") as (editor, _):
        await editor.say(await editor.open(), "make it")

    assert len(editor.client.asked) == 1
    assert (editor.workspace / "made.txt").exists()


async def test_what_is_always_allowed_is_not_asked_in_the_next_session(tmp_path: Path) -> None:
    async with editing(tmp_path, [RUN, "Done.", RUN, "Done."], "always") as (editor, _):
        await editor.say(await editor.open(), "make it")
        await editor.say(await editor.open(), "make it")

    assert len(editor.client.asked) == 1


async def test_a_cancelled_answer_ends_at_once(tmp_path: Path) -> None:
    async with editing(tmp_path, [Answer(text="word " * 500, pace=0.05)]) as (editor, _):
        session = await editor.open()
        saying = asyncio.create_task(editor.say(session, "talk"))
        await editor.client.wait_for("agent_message_chunk")
        taken = []
        began = time.monotonic()
        await editor.agent.cancel(session_id=session)
        ended = await saying
        taken.append(time.monotonic() - began)

    assert ended.stop_reason == "cancelled"
    assert ended.usage.input_tokens > 100  # no server counts what was cut off: our own estimate
    assert 0 < ended.usage.output_tokens < 500
    assert taken[0] < 15  # the whole answer takes 25 s; a stop takes some 40 ms on an idle machine


async def test_a_stop_that_comes_with_the_prompt_is_not_lost(tmp_path: Path) -> None:
    async with editing(tmp_path, [Answer(text="word " * 500, pace=0.05)]) as (editor, _):
        session = await editor.open()
        saying = asyncio.create_task(editor.say(session, "talk"))
        await asyncio.sleep(0)
        await editor.agent.cancel(session_id=session)

        assert (await saying).stop_reason == "cancelled"


async def test_a_stopped_command_keeps_what_it_printed_in_the_editor_the_record_and_the_prompt(tmp_path: Path) -> None:
    run = Answer(calls=[("shell", {"command": "touch made.txt; echo be''gun; sleep 300"})])
    async with editing(tmp_path, [run, "I see."], "once") as (editor, server):
        session = await editor.open()
        saying = asyncio.create_task(editor.say(session, "run it"))
        async with editor.client.seen, asyncio.timeout(WAIT_SECONDS):
            await editor.client.seen.wait_for(lambda: "begun" in str(editor.client.calls()))
        statuses = [update.get("status") for update in editor.client.updates if "toolCallId" in update]
        with pytest.raises(RequestError, match="Wait for it, or stop it"):
            await editor.agent.set_config_option(session_id=session, config_id="model", value="scripted")
        await editor.agent.cancel(session_id=session)
        await editor.agent.cancel(session_id=session)
        ended = await saying
        assert (ended.stop_reason, ended.usage.input_tokens) == ("cancelled", 20)  # of the request before the command
        shown = [str(call["content"]) for call in editor.client.calls().values()]
        editor.client.updates.clear()
        await editor.agent.load_session(cwd=str(editor.workspace), session_id=session, mcp_servers=[])
        shown += [str(call["content"]) for call in editor.client.calls().values()]
        await editor.say(session, "go on")

    assert statuses[:3] == ["in_progress", "pending", "in_progress"]  # judged, asked about, allowed
    assert len(shown) == 2
    for text in (*shown, str(server.chats[-1]["messages"])):
        assert "begun" in text
        assert "cancelled before this call finished" in text


async def test_a_stop_withdraws_the_question_that_waits(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    async with editing(tmp_path, [EDIT, "Done."], "wait") as (editor, _):
        session = await editor.open()
        saying = asyncio.create_task(editor.say(session, "change it"))
        await editor.client.asking.wait()
        await editor.agent.cancel(session_id=session)

        assert (await saying).stop_reason == "cancelled"
        assert (await editor.say(session, "/status")).stop_reason == "end_turn"

    assert file.read_text() == "one\ntwo\n"


async def test_a_second_prompt_beside_the_first_is_refused(tmp_path: Path) -> None:
    async with editing(tmp_path, [Answer(text="word " * 500, pace=0.05)]) as (editor, _):
        session = await editor.open()
        saying = asyncio.create_task(editor.say(session, "talk"))
        await editor.client.wait_for("agent_message_chunk")
        with pytest.raises(RequestError, match="being answered") as second:
            await editor.say(session, "talk more")
        with pytest.raises(RequestError, match="being answered"):
            await editor.agent.load_session(cwd=str(editor.workspace), session_id=session, mcp_servers=[])
        await editor.agent.cancel(session_id=session)
        await saying

    assert (second.value.code, second.value.data["reason"]) == (-32600, "busy")


async def test_a_slash_command_is_run_and_a_wrong_one_is_told(tmp_path: Path) -> None:
    async with editing(tmp_path, []) as (editor, server):
        session = await editor.open()
        await editor.say(session, "/todos add write the tests")
        await editor.say(session, "/statsu")

    assert "Did you mean /status?" in editor.client.said()
    assert [update["entries"] for update in editor.client.updates if update["sessionUpdate"] == "plan"] == [
        [{"content": "write the tests", "priority": "medium", "status": "in_progress"}]
    ]
    assert server.chats == []


async def test_the_approval_level_is_the_mode_of_the_editor(tmp_path: Path) -> None:
    file = prepare_file(tmp_path)
    async with editing(tmp_path, [EDIT, "Done."]) as (editor, _):
        session = await editor.open()
        await editor.agent.set_session_mode(session_id=session, mode_id="accept-edits")
        await editor.say(session, "change it")
        with pytest.raises(RequestError, match=r"No approval 'anything'\. One of read-only, ask") as wrong:
            await editor.agent.set_session_mode(session_id=session, mode_id="anything")
        assert wrong.value.code == -32602

    assert editor.client.asked == []
    assert file.read_text() == "one\nthree\n"
    assert "accept-edits" in [update.get("currentModeId") for update in editor.client.updates]


async def test_plan_mode_holds_whatever_the_approval_level(tmp_path: Path) -> None:
    write = Answer(calls=[("write_file", {"path": "new.txt", "content": "x"})])
    script = [write, RUN, "I see.", write, "Done."]
    async with editing(tmp_path, script, "once") as (editor, _):
        session = await editor.open()
        await editor.agent.set_config_option(session_id=session, config_id="mode", value="plan")
        await editor.agent.set_session_mode(session_id=session, mode_id="yolo")
        await editor.agent.set_config_option(session_id=session, config_id="approval", value="yolo")
        await editor.say(session, "write it")
        assert {file.name for file in editor.workspace.iterdir()} <= {".ollm"}
        modes = [update["currentModeId"] for update in editor.client.updates if "currentModeId" in update]
        assert modes[-1] == "read-only"  # the editor shows what holds, not what was chosen
        assert "keeps the approval" in editor.client.said("agent_thought_chunk")
        await editor.agent.set_config_option(session_id=session, config_id="mode", value="code")
        await editor.say(session, "write it")

    assert (editor.workspace / "new.txt").exists()
    assert editor.client.asked == []


@pytest.mark.parametrize(("option", "value"), [("model", "no-such"), ("mode", "no-such"), ("approval", True)])
async def test_an_option_that_cannot_be_is_wrong_parameters(tmp_path: Path, option: str, value: str | bool) -> None:
    async with editing(tmp_path, []) as (editor, _):
        session = await editor.open()
        with pytest.raises(RequestError) as wrong:
            await editor.agent.set_config_option(session_id=session, config_id=option, value=value)

    assert wrong.value.code == -32602
    assert "Usage: /" not in str(wrong.value)


async def test_options_are_set_and_told(tmp_path: Path) -> None:
    async with editing(tmp_path, []) as (editor, _):
        session = await editor.open()
        found = await editor.agent.set_config_option(session_id=session, config_id="mode", value="plan")
        await editor.agent.set_config_option(session_id=session, config_id="model", value="scripted")
        with pytest.raises(RequestError, match="Options: approval, mode, model"):
            await editor.agent.set_config_option(session_id=session, config_id="colour", value="red")

    assert {option.id: option.current_value for option in found.config_options} == {
        "approval": "read-only",
        "mode": "plan",
        "model": "scripted",
    }
    assert "config_option_update" in editor.client.kinds()


async def test_a_server_that_fails_is_an_error_of_the_prompt(tmp_path: Path) -> None:
    refused = Answer(status=400, body={"error": {"message": "no such thing"}})
    async with editing(tmp_path, [refused] * 10) as (editor, server):
        session = await editor.open()
        with pytest.raises(RequestError, match="no such thing"):
            await editor.say(session, "hi")
        server.script = ["Well."]
        assert (await editor.say(session, "again")).stop_reason == "end_turn"


async def test_a_conversation_is_told_with_every_kind_of_update(tmp_path: Path) -> None:
    prepare_file(tmp_path)
    script = [
        Answer(text="I look.", thinking="Where is it?", calls=[("grep", {"pattern": "two"})]),
        Answer(calls=[("write_todos", {"action": "add", "text": "change it"})]),
        EDIT,
        Answer(calls=[("shell", {"command": "echo printed; exit 3"})]),
        "Done.",
    ]
    async with editing(tmp_path, script, "once") as (editor, _):
        session = await editor.open()
        await editor.say(session, "change it")
        await editor.say(session, "/mode plan")
        await editor.agent.load_session(cwd=str(editor.workspace), session_id=session, mcp_servers=[])

    assert editor.client.kinds() == {
        "available_commands_update",
        "user_message_chunk",
        "agent_thought_chunk",
        "agent_message_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "usage_update",
        "session_info_update",
        "current_mode_update",
        "config_option_update",
    }
    calls = list(editor.client.calls().values())
    assert [call["kind"] for call in calls] == ["search", "think", "edit", "execute"]
    assert calls[3]["rawOutput"]["exitCode"] == 3
    assert "printed" in calls[3]["content"][0]["content"]["text"]


async def test_a_session_closed_in_the_middle_answers_its_prompt_and_can_be_loaded(tmp_path: Path) -> None:
    async with editing(tmp_path, [Answer(text="word " * 4000, pace=0.05), "Again."]) as (editor, _):
        session = await editor.open()
        saying = asyncio.create_task(editor.say(session, "talk"))
        await editor.client.wait_for("agent_message_chunk")
        await editor.agent.close_session(session_id=session)
        assert (await saying).stop_reason == "cancelled"
        await editor.agent.load_session(cwd=str(editor.workspace), session_id=session, mcp_servers=[])

        assert (await editor.say(session, "again")).stop_reason == "end_turn"


async def test_a_terminal_of_the_editor_only_shows_our_command(tmp_path: Path) -> None:
    shows = wire.ClientCapabilities(terminal=True, field_meta={"terminal_output": True})
    script = [Answer(calls=[("shell", {"command": "echo printed"})]), "Done."]
    async with editing(tmp_path, script, "once", shows) as (editor, _):
        await editor.say(await editor.open(), "run it")

    about = [update["_meta"] for update in editor.client.updates if "_meta" in update]
    call = next(iter(editor.client.calls()))
    assert about[0]["terminal_info"] == {"terminal_id": call, "cwd": str(editor.workspace)}
    assert "printed" in "".join(each.get("terminal_output", {}).get("data", "") for each in about)
    assert about[-1]["terminal_exit"]["exit_code"] == 0
