"""One message as HTML."""

import re

from ollm.domain.messages import ImagePart, Message, TextPart, ToolCallPart
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.services.session_export.html import render_diff_as_html, render_message_as_html

AT = "2026-01-02T03:04:05.000Z"


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
