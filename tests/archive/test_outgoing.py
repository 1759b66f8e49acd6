"""Records as they leave: redacted, without hidden files; damaged sessions as they are."""

import json

from ollm.archive.outgoing import HIDDEN_TEXT, RecordCleaner
from ollm.services.redaction import MARK, Redactor
from tests.servers.archive_machine import MakeMachine, make_call


def test_a_damaged_session_comes_back_with_the_damage_it_had(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop", redact=False), machine("desktop", redact=False)
    session = laptop.record("One", "Two", "Three")
    path = laptop.home / "sessions" / f"{session}.json"
    broken = path.read_bytes().replace(b'"Two"', b'"Tw\x00\xff')
    path.write_bytes(broken)

    laptop.run("push")
    desktop.run("pull", session)

    assert (desktop.home / "sessions" / f"{session}.json").read_bytes() == broken
    assert "damaged when it was archived" in desktop.warned
    assert "Three" in desktop.ollm("sessions", "view", session)
    assert [hit["number"] for hit in desktop.json("search", "three")] == [3]
    assert "! One" in desktop.run("list")


def test_of_a_damaged_session_what_can_be_read_leaves_redacted(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    session = laptop.record("One", "Two", "password=hunter2hunter2")
    path = laptop.home / "sessions" / f"{session}.json"
    path.write_bytes(path.read_bytes().replace(b'"Two"', b'"Tw\x00\xff'))

    laptop.run("push")
    desktop.run("pull", session)

    shown = desktop.ollm("sessions", "view", session)
    assert "One" in shown
    assert "hunter2" not in shown


def test_a_document_of_another_layout_comes_back_byte_for_byte(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop", redact=False), machine("desktop", redact=False)
    session = laptop.record("One", "Two")
    path = laptop.home / "sessions" / f"{session}.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=3), encoding="utf-8")

    laptop.run("push")
    desktop.run("pull", session)

    assert (desktop.home / "sessions" / path.name).read_bytes() == path.read_bytes()


def test_results_about_files_that_ollmignore_hides_stay_here(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    project = laptop.home / "project"
    (project / "inner").mkdir(parents=True)
    (project / ".ollmignore").write_text("private/\n*.key\n")
    (project / "inner" / ".ollmignore").write_text("notes.txt\n")
    calls = (
        make_call("c1", "hidden words", path="private/plan.md"),
        make_call("c2", "hidden words", path=str(project / "inner" / "notes.txt")),
        make_call("c3", "open words", path="readme.md"),
    )
    session = laptop.record("Read them", "Yes", calls=calls, workspace=str(project))

    laptop.run("push")
    desktop.run("pull", session)

    assert b"hidden words" not in desktop.document(session)
    assert b"open words" in desktop.document(session)
    assert desktop.json("search", "hidden words") == []


KEY = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


def is_hidden(path: str) -> bool:
    return path.removeprefix("./").startswith("secret/")


def redact(name: str, text: str) -> str:
    return MARK if name == "password" else Redactor().redact(text)


CLEANER = RecordCleaner(redact, is_hidden)
PLAIN = RecordCleaner(None, is_hidden)


def make(name: str, result: str, **args: object) -> dict[str, object]:
    return {"id": "c1", "name": name, "args": args, "result": {"llmContent": result, "fullOutput": result}}


def test_secrets_go_at_any_depth_and_by_the_name_they_stand_under() -> None:
    call = make("http", f"token {KEY}", headers={"password": "hunter2", "x": [f"Bearer {KEY}"]}, data=KEY)

    cleaned = CLEANER.clean_call(call)

    assert KEY not in str(cleaned)
    assert cleaned["args"]["headers"]["password"] == MARK
    assert cleaned["id"] == "c1"
    assert CLEANER.clean_message({"id": 1, "role": "user", "parts": [{"type": "text", "text": "plain"}]})["id"] == 1


def test_the_result_of_a_call_about_a_hidden_file_stays_here() -> None:
    for call in (
        make("read_file", "the plan", path="secret/plan.md"),
        make("read_many_files", "the plan", paths=["a.md", "./secret/plan.md"]),
        make("shell", "the plan", command="cat <secret/plan.md | head"),
        make("shell", "the plan", command="cat a#b secret/plan.md"),
        make("write_file", "ok the plan", path="secret/plan.md", content="the plan"),
    ):
        cleaned = PLAIN.clean_call(call)
        assert "the plan" not in str(cleaned), call
        assert HIDDEN_TEXT in str(cleaned)
    for path, sent in (("secret/plan.png", []), ("logo.png", ["iVBORw0KGgo="])):
        call = make("read_file", "a picture", path=path)
        call["result"] = {"llmContent": "a picture", "images": ["iVBORw0KGgo="]}
        assert PLAIN.clean_call(call)["result"]["images"] == sent


def test_lines_about_hidden_files_are_left_out_of_lists_and_searches() -> None:
    cleaned = PLAIN.clean_call(
        make("grep", "a.py:3: total\nsecret/plan.md:1: total\nsecret/my plan:2: x\nb.py", pattern="t")
    )

    assert cleaned["result"]["llmContent"].split("\n") == ["a.py:3: total", "b.py", HIDDEN_TEXT]


def test_without_redaction_and_hidden_files_nothing_changes() -> None:
    call = make("shell", f"secret words, key {KEY}\n  - item: x", command="ls -la 'unfinished")

    assert PLAIN.clean_call(call) is call
    assert PLAIN.clean_message({"a": KEY}) == {"a": KEY}
    assert PLAIN.clean_head({"metadata": {"title": KEY}}) == {"metadata": {"title": KEY}}
