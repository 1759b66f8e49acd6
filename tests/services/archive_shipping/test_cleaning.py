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


def test_a_call_without_a_result_loses_what_it_would_have_written() -> None:
    call = {"id": "c1", "name": "write_file", "args": {"path": "secret/plan.md", "content": "the plan", "edits": ["x"]}}

    assert PLAIN.clean_call(call) == {
        **call,
        "args": {"path": "secret/plan.md", "content": HIDDEN_TEXT, "edits": HIDDEN_TEXT},
    }
    assert PLAIN.clean_call({"id": "c1", "args": "secret/plan.md", "result": None})["args"] == "secret/plan.md"
    read = make("read_file", "", path="secret/plan.md")
    assert PLAIN.clean_call(read) == read


def test_a_line_is_about_a_file_when_it_begins_like_a_path() -> None:
    everything = RecordCleaner(None, lambda _path: True)
    hidden = ["word", "two words.txt", "dir/two words: x", "a" * 499, "a.py-3-text"]
    told = ["two words", "a" * 500, "", "one two three"]

    for line in hidden:
        cleaned = everything.clean_call(make("grep", f"{line}\ntwo words"))
        assert cleaned["result"]["llmContent"] == f"two words\n{HIDDEN_TEXT}", line
    call = make("grep", "\n".join(told))
    assert everything.clean_call(call) is call


def test_every_way_to_name_a_file_is_seen() -> None:
    for name in ("path", "paths", "cwd", "file", "files", "filePattern"):
        for value in ("secret/a", ["b", "secret/a"]):
            assert PLAIN.clean_call(make("x", "the plan", **{name: value}))["result"]["llmContent"] == HIDDEN_TEXT
    for command in ("cat 'unfinished secret/a", "x --out=secret/a", "(cat secret/a)", "a&&secret/a"):
        assert PLAIN.clean_call(make("shell", "the plan", command=command))["result"]["llmContent"] == HIDDEN_TEXT
    for other in ({"text": "secret/a"}, {"path": ""}, {"path": 3}, {"command": "ls -secret/a"}):
        call = make("shell", "the plan", **other)
        assert PLAIN.clean_call(call) is call


def test_what_a_session_is_known_by_is_never_taken_for_a_secret() -> None:
    cleaner = RecordCleaner(lambda _text: "gone", is_hidden)
    head = {"sessionId": "s", "startTime": "t", "lastActivity": "t", "model": "m", "provider": "p", "title": "x"}
    message = {"id": 1, "role": "user", "timestamp": "t", "parts": ["odd", {"type": "text", "id": "1", "text": "x"}]}
    call = {"id": "c", "name": "n", "timestamp": "t", "messageId": 1, "status": "ok", "args": {"n": 1, "deep": [["x"]]}}

    assert cleaner.clean_head(head) == {**head, "title": "gone"}
    assert cleaner.clean_message(message) == {**message, "parts": ["odd", {"type": "text", "id": "1", "text": "gone"}]}
    assert cleaner.clean_message({"parts": None, "x": "y"}) == {"parts": None, "x": "gone"}
    assert cleaner.clean_call(call) == {**call, "args": {"gone": [["gone"]]}}
    assert RecordCleaner(lambda text: text, is_hidden).clean_head({"password": "", "token": "x"}) == {
        "password": "",
        "token": MARK,
    }
