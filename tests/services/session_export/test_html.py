"""The exported page of a real session: contents, rendered answers, named calls and diffs."""

import re
from pathlib import Path

from tests.cli.running import running
from tests.servers.answers import Answer

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
    assert calls == [("failed", "", "Run echo out; exit 3"), ("ok", " open", "Edit a.py (1 edit)")]
    assert '<span class="outcome">exit 3</span>' in page
    assert '<span class="del" data-line="1">-x = <mark>1</mark>\n</span>' in page
    assert '<span class="add" data-line="1">+x = <mark>2</mark>\n</span>' in page
    assert "<script" not in page
    assert "Change &lt;b&gt;a.py&lt;/b&gt;\nand more</pre>" in page
