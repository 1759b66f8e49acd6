"""`ollm -p` on a terminal renders the answer; piped it is what the model wrote."""

from pathlib import Path

from tests.cli.running import running
from tests.cli.terminal import at_terminal
from tests.servers.answers import Answer

MARKDOWN = """# Result

It is **done**:

- one
- two

| file | lines |
|------|-------|
| a.py | 3 |

```python
print("hi")
```
"""


async def test_markdown_is_rendered_on_a_terminal_and_left_alone_in_a_pipe(tmp_path: Path) -> None:
    read = Answer(text="I will **look**.", calls=[("read_file", {"path": "a.py"})])
    async with running(tmp_path, [read, MARKDOWN, MARKDOWN, MARKDOWN]) as runner:
        (runner.workspace / "a.py").write_text("print('hi')\n")
        async with at_terminal(runner, "-p", "do it", size=(60, 30)) as terminal:
            assert await terminal.ended() == 0
        piped = await runner.run("-p", "do it")
        async with at_terminal(runner, "-p", "do it", OLLM_PLAIN="1") as plain:
            assert await plain.ended() == 0

    shown = terminal.text()
    assert "I will look." in shown
    assert shown.index("I will look.") < shown.index("Read a.py") < shown.index("Result")
    assert "**" not in shown
    assert "|---" not in shown
    assert "```" not in shown
    assert "• one\n" in shown
    assert "file" in shown
    assert "\x1b[1m" in terminal.raw.decode()
    assert piped.out == MARKDOWN
    assert "**done**" in plain.text()


async def test_no_colour_is_used_where_none_is_wanted(tmp_path: Path) -> None:
    async with running(tmp_path, [MARKDOWN]) as runner, at_terminal(runner, "-p", "do it", NO_COLOR="1") as terminal:
        assert await terminal.ended() == 0

    assert "\x1b[3" not in terminal.raw.decode()
    assert "It is done:" in terminal.text()
