"""What is taken out before a record leaves, and what is left as it is."""

from ollm.services.archive_shipping.cleaning import HIDDEN_TEXT, RecordCleaner
from ollm.services.redaction import MARK, Redactor

KEY = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


def is_hidden(path: str) -> bool:
    return path.removeprefix("./").startswith("secret/")


CLEANER = RecordCleaner(Redactor().redact, is_hidden)
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


def test_a_picture_and_ids_are_left_alone() -> None:
    message = {"id": 7, "role": "user", "parts": [{"type": "image", "mediaType": "image/png", "data": "iVBORw0KGgo="}]}

    assert CLEANER.clean_message(message) == message


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
