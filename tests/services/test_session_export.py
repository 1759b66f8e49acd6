"""A session as Markdown, as a page, and without its secrets."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ollm.domain.messages import ImagePart, Message, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from ollm.domain.session import Session, SessionMetadata
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.services.session_export import RedactedSession
from ollm.services.session_export.html import (
    render_diff_as_html,
    render_html,
    render_markdown_as_html,
    render_message_as_html,
)
from ollm.services.session_export.markdown import (
    close_fence,
    render_markdown,
)
from tests.cli.running import running
from tests.servers.answers import Answer

AT = "2026-01-27T10:00:00.000Z"


def call(name: str = "ls", call_id: str = "c1", **more: object) -> ToolCallRecord:
    return ToolCallRecord(
        **{"id": call_id, "name": name, "args": {"path": "."}, "timestamp": AT, "status": "ok"} | more
    )  # type: ignore[arg-type]


class Source:
    def __init__(self, *messages: Message, calls: tuple[ToolCallRecord, ...] = (), **metadata: object) -> None:
        self.session = Session(
            session_id="s1",
            start_time=AT,
            last_activity=AT,
            model="m",
            provider="p",
            messages=(),
            tool_calls=(),
            metadata=SessionMetadata(**metadata),  # type: ignore[arg-type]
        )
        self._messages = messages
        self._calls = {one.id: one for one in calls}
        self._told: set[str] = set()

    def iter_messages(self) -> Iterator[Message]:
        return iter(self._messages)

    def find_call(self, call_id: str) -> ToolCallRecord | None:
        self._told.add(call_id)
        return self._calls.get(call_id)

    def iter_other_calls(self) -> Iterator[ToolCallRecord]:
        return (one for name, one in self._calls.items() if name not in self._told)


TALK = Source(
    Message(
        id=1, role="user", parts=(TextPart("Look <b>here</b>\n```py\nx"), ImagePart("image/png", "aGk=")), timestamp=AT
    ),
    Message(
        id=2,
        role="assistant",
        parts=(ThinkingPart("hm\nhm"), TextPart("Looking."), ToolCallPart("c1"), ToolCallPart("gone")),
        timestamp=AT,
        interrupted=True,
    ),
    Message(id=3, role="tool", parts=(ToolResultPart("c1"),), timestamp=AT),
    Message(id=4, role="tool", parts=(TextPart("a fact"),), timestamp=AT),
    calls=(
        call(result=RecordedResult(llm_content="short", full_output="a ``` b\x1b[31m", exit_code=2)),
        call("other", "c9", status="failed"),
    ),
    title="A  title <x>",
    workspace="/w",
)

SHOWN = "2026-01-27 10:00 UTC"


def test_the_whole_document() -> None:
    text = "".join(render_markdown(TALK))

    assert text == (
        "# A title &lt;x>\n\n- Session: `s1`\n- Model: m (p)\n"
        f"- From {SHOWN} to {SHOWN}\n- Workspace: /w\n"
        f"\n## 1. User\n\n*{SHOWN}*\n\nLook <b>here</b>\n```py\nx\n```\n\n*(an image, image/png)*\n"
        f"\n## 2. Assistant (interrupted)\n\n*{SHOWN}*\n\n> *Thinking*\n>\n> hm\n> hm\n\nLooking.\n"
        '\n**Tool call: ls** (exit 2)\n\n```json\n{\n  "path": "."\n}\n```\n'
        "\n```\na ``` b\\x1b[31m\n```\n"
        f"\n## 4. Tool\n\n*{SHOWN}*\n\na fact\n"
        '\n**Tool call: other** (failed)\n\n```json\n{\n  "path": "."\n}\n```\n'
    )


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("plain", "plain"),
        ("```\na\n```", "```\na\n```"),
        ("```\na", "```\na\n```"),
        ("~~~~\na\n~~~", "~~~~\na\n~~~\n~~~~"),
        ("```\n~~~", "```\n~~~\n```"),
        ("```\n```py", "```\n```py\n```"),
        ("```\n`````\nb", "```\n`````\nb"),
        ("````\n```\nb", "````\n```\nb\n````"),
        ("~~~\n```\nb\n~~~\nc", "~~~\n```\nb\n~~~\nc"),
        ("```\na\n``` \nb\n```x", "```\na\n``` \nb\n```x\n```"),
        ("    ```", "    ```"),
        ("   ```", "   ```\n```"),
    ],
)
def test_a_fence_left_open_is_closed(text: str, closed: str) -> None:
    assert close_fence(text) == closed


HOSTILE = """<script>alert(1)</script> [x](javascript:alert(1)) [y](data:text/html,hi) ![p](http://evil.example/p.png)

<img src=x onerror=alert(1)>
"""


def test_headings_lists_tables_and_code_become_their_tags() -> None:
    page = render_markdown_as_html("# One\n\n- a **b**\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n```python\na < b\n```\n")

    assert "<h3>One</h3>" in page, "below the heading of its message"
    assert "<strong>b</strong>" in page
    assert "<td>1</td>" in page
    assert '<span class="n">a</span> <span class="o">&lt;</span> <span class="n">b</span>' in page


def test_nothing_of_it_runs_or_is_loaded() -> None:
    page = render_markdown_as_html(HOSTILE)

    assert "<script" not in page
    assert "<img" not in page
    assert 'href="javascript' not in page
    assert 'href="data' not in page
    assert "[p]" in page


def test_deep_nesting_is_no_error() -> None:
    assert "deep" in render_markdown_as_html(">" * 1500 + " deep")
    assert render_markdown_as_html("[" * 5_000)


def test_headings_go_down_one_step_at_a_time() -> None:
    page = render_markdown_as_html("# a\n\n### b\n\n###### c\n\n# d\n\n## e\n")

    assert re.findall(r"<(h\d)>", page) == ["h3", "h4", "h5", "h3", "h4"]
    assert re.findall(r"</(h\d)>", page) == ["h3", "h4", "h5", "h3", "h4"]


def test_what_cannot_be_parsed_is_shown_as_it_is() -> None:
    assert render_markdown_as_html("> " * 40 + "<b>") == f"<pre>{'&gt; ' * 40}&lt;b&gt;</pre>"
    assert render_markdown_as_html("- " * 50 + "deep") == f"<pre>{'- ' * 50}deep</pre>"
    assert render_markdown_as_html("- " * 49 + "deep").startswith("<ul>\n<li>\n<ul>")
    assert "deep" in render_markdown_as_html("- " * 49 + "deep")
    assert render_markdown_as_html("") == ""
    assert render_markdown_as_html("> " * 39 + "deep").startswith("<blockquote>")


def test_links_and_pictures_that_lead_elsewhere_are_words() -> None:
    page = render_markdown_as_html(
        "[a](#x) [b](mailto:a@b.c) [c](./d.txt) [d](http://h) ![](p.png) ![<p>](p.png) <b>e</b> ~~f~~"
    )

    assert page == (
        '<p><a href="#x" rel="noreferrer noopener">a</a> <a href="mailto:a@b.c" rel="noreferrer noopener">b</a> '
        '<a rel="noreferrer noopener">c</a> <a href="http://h" rel="noreferrer noopener">d</a> [image] [&lt;p&gt;] '
        "&lt;b&gt;e&lt;/b&gt; <s>f</s></p>\n"
    )


def make_call(**more: object) -> ToolCallRecord:
    fields = {"id": 'c"1', "name": "shell", "args": {"command": "ls <x>"}, "timestamp": AT, "status": "ok"}
    return ToolCallRecord(**{**fields, "summary": "Run ls <x>", **more})  # type: ignore[arg-type]


def render(message: Message, call: ToolCallRecord | None = None, most: int | None = None) -> str:
    return "".join(render_message_as_html(message, lambda _: call, most))


def test_a_call_is_folded_and_named_and_its_output_cut_where_a_bound_is_set() -> None:
    message = Message(role="assistant", parts=(ToolCallPart(id="c1"),), timestamp=AT, id=7)
    page = render(message, make_call(result=RecordedResult(llm_content="y" * 100)), 60)

    assert '<section class="assistant" id="m7">' in page
    assert '<details class="call ok" data-call="c&quot;1">' in page
    assert "Run ls &lt;x&gt;" in page
    assert f'<pre class="output">{"y" * 60}</pre>' in page
    assert "40 more characters" in page


def test_a_running_call_and_a_failed_one_are_marked() -> None:
    message = Message(role="assistant", parts=(ToolCallPart(id="c1"),), timestamp=AT, id=7)

    assert "call running" in render(message, make_call(status="running"))
    assert "call failed" in render(message, make_call(status="denied"))
    assert "call failed" in render(message, make_call(result=RecordedResult(llm_content="", exit_code=2)))


def test_what_a_person_typed_is_shown_as_it_is_and_pictures_have_words() -> None:
    parts = (TextPart(text="**not bold** <b>"), ImagePart(media_type="image/png", data='AA"'))
    page = render(Message(role="user", parts=parts, timestamp=AT, id=1, interrupted=True))

    assert "**not bold** &lt;b&gt;" in page
    assert 'alt="Attached image" src="data:image/png;base64,AA&quot;"' in page
    assert "(interrupted)" in page
    assert "(an image, text/html)" in render(
        Message(role="user", parts=(ImagePart(media_type="text/html", data="x"),), timestamp=AT, id=1)
    )


def test_a_long_attachment_is_folded_under_its_name_and_a_short_one_is_not() -> None:
    def show(text: str, most: int | None = None) -> str:
        parts = (TextPart(text="Look."), TextPart(text=text))
        return render(Message(role="user", parts=parts, timestamp=AT, id=1), most=most)

    folded = '<details class="attachment"><summary><b>a &lt;b&gt;.log</b> 9,000 characters</summary>'
    assert folded in show("\n\n[a <b>.log]\n" + "<i>words" * 1125)
    assert "&lt;i&gt;words</pre>" in show("\n\n[a <b>.log]\n" + "<i>words" * 1125)
    assert "8,000 more characters" in show("\n\n[a <b>.log]\n" + "<i>words" * 1125, 1000)
    assert "<details" in show("\n\n[many.txt]\n" + "x\n" * 40)
    short = '<details class="attachment" open><summary><b>few.txt</b> 8 characters</summary>\n<pre>x\n'
    assert short in show("\n\n[few.txt]\n" + "x\n" * 4)
    assert "<details" not in show("typed " * 1000), "a question of a page or two stays open"
    assert "<b>Long text</b> 60,000 characters" in show("pasted " * 8571 + "abc")


def test_the_lines_of_a_diff_are_told_apart() -> None:
    diff = "--- a\n+++ b\n@@ -7,2 +7,2 @@\n-sum = <b>\n+sum += <b>\n same\n"
    page = "".join(render_diff_as_html(diff))

    assert re.findall(r'<span(?: class="(\w+)")?(?: data-line="(\d+)")?>', page) == [
        ("head", ""), ("head", ""), ("hunk", ""), ("del", "7"), ("add", "7"), ("", "8"),
    ]  # fmt: skip
    assert "+sum <mark>+</mark>= &lt;b&gt;" in page
    assert ">-sum = &lt;b&gt;\n<" in page
    assert "".join(render_diff_as_html(diff, len(diff))) == page
    assert "".join(render_diff_as_html(diff, 5)) == (
        '<pre class="diff"><span class="head">--- a\n</span></pre>\n'
        f'<p class="meta">{len(diff) - 5} more characters; an export has them all.</p>\n'
    )


ANSWER = "Done:\n\n| file | change |\n|---|---|\n| a.py | **one** line |\n\n```python\nx = 1 < 2\n```\n"

SCRIPT = [
    Answer(calls=[("shell", {"command": "echo out; exit 3"})]),
    Answer(
        thinking="Hm.", calls=[("edit_file", {"path": "a.py", "edits": [{"target": "x = 1", "replacement": "x = 2"}]})]
    ),
    ANSWER,
]


async def test_a_page_has_contents_rendered_answers_named_calls_and_diffs(tmp_path: Path) -> None:
    async with running(tmp_path, SCRIPT) as runner:
        (runner.workspace / "a.py").write_text("x = 1\ny = 2\n")
        await runner.run("-p", "Change <b>a.py</b>\nand more", "--yes")
        exported = await runner.run("sessions", "export", "-o", "-", "--format", "html")

    page = exported.out
    (number,) = re.findall(r'<li><a href="#m(\d+)">Change &lt;b&gt;a.py&lt;/b&gt;</a></li>', page)
    assert f'id="m{number}"' in page
    assert "<td>a.py</td>" in page
    assert "<strong>one</strong> line" in page
    assert "x = 1 &lt; 2" in re.sub("<[^>]+>", "", page)
    calls = re.findall(r'<details class="call (\w+)" data-call="[^"]+"( open)?><summary><b>(.*?)</b>', page)
    assert calls == [("failed", " open", "Run echo out; exit 3"), ("ok", " open", "Edit a.py (1 edit)")]
    assert '<span class="outcome">exit 3</span>' in page
    assert '<span class="del" data-line="1">-x = <mark>1</mark>\n</span>' in page
    assert '<span class="add" data-line="1">+x = <mark>2</mark>\n</span>' in page
    assert "<script" not in page
    assert "Change &lt;b&gt;a.py&lt;/b&gt;\nand more</pre>" in page


def says(number: int, text: str, role: str = "user") -> Message:
    return Message(id=number, role=role, parts=(TextPart(text),) if text else (), timestamp=AT)  # type: ignore[arg-type]


def list_contents(*messages: Message) -> list[tuple[str, str]]:
    return re.findall(r'<li><a href="#m(\d+)">(.*)</a></li>', "".join(render_html(Source(*messages))))


def test_the_contents_are_the_first_lines_of_what_the_user_said() -> None:
    said = [says(1, "\n  first & last  \nmore"), says(2, "answer", "assistant"), says(3, ""), says(4, "x" * 70)]

    assert list_contents(*said, says(5, "y" * 71)) == [
        ("1", "first &amp; last"),
        ("3", "(no text)"),
        ("4", "x" * 70),
        ("5", "y" * 69 + "…"),
    ]


def test_no_more_than_two_thousand_stand_in_the_contents() -> None:
    assert [len(list_contents(*(says(n, "a") for n in range(count)))) for count in (2000, 2002)] == [2000, 2000]


def test_a_result_is_shown_with_its_call_and_on_its_own_only_where_it_has_text() -> None:
    page = "".join(render_html(Source(says(1, "", "tool"), says(2, "a fact", "tool"), says(3, "", "assistant"))))

    assert re.findall(r'id="m(\d+)"', page) == ["2", "3"]
    assert page.lower().startswith("<!doctype html>")
    assert page.endswith("</ol></nav>\n</body>\n</html>\n")


def hide(_name: str, text: str) -> str:
    return text.replace("secret", "***")


SOURCE = Source(
    Message(id=7, role="user", parts=(TextPart("my secret"), ImagePart("image/secret", "secret")), timestamp=AT),
    calls=(
        call(
            "secret_tool",
            "secret-id",
            args={"deep": [{"x": "a secret"}], "id": "secret", "n": 5},
            result=RecordedResult(llm_content="secret out"),
        ),
    ),
    title="a secret title",
)


def test_texts_are_changed_and_ids_times_roles_and_pictures_are_not() -> None:
    redacted = RedactedSession(SOURCE, hide)

    (message,) = redacted.iter_messages()
    assert (message.id, message.role, message.timestamp, message.text) == (7, "user", AT, "my ***")
    assert message.parts[1] == ImagePart("image/secret", "secret")
    assert redacted.session.metadata.title == "a *** title"
    assert redacted.session.session_id == "s1"


def test_calls_are_changed_to_the_bottom_and_found_by_their_id() -> None:
    redacted = RedactedSession(SOURCE, hide)
    assert [found.name for found in redacted.iter_other_calls()] == ["***_tool"]

    found = redacted.find_call("secret-id")

    assert found is not None
    assert found.args == {"deep": [{"x": "a ***"}], "id": "***", "n": 5}
    assert found.result is not None
    assert found.result.llm_content == "*** out"
    assert redacted.find_call("unknown") is None


def test_the_document_is_a_session_without_secrets() -> None:
    fresh = Source(*SOURCE.iter_messages(), calls=(call("x", "c1", result=RecordedResult(llm_content="secret")),))

    document = json.loads(b"".join(RedactedSession(fresh, hide).iter_document()))

    assert document["sessionId"] == "s1"
    assert [message["id"] for message in document["messages"]] == [7]
    assert document["toolCalls"][0]["result"]["llmContent"] == "***"
