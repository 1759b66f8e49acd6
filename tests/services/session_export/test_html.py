"""The exported page of a real session: contents, rendered answers, named calls and diffs."""

import re
from pathlib import Path

from ollm.domain.messages import Message, TextPart
from ollm.services.session_export.html import render_html
from tests.cli.running import running
from tests.servers.answers import Answer
from tests.services.session_export.sources import AT, Source

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
