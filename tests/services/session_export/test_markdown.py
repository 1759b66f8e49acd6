"""A session as Markdown that nothing in it can break out of."""

import pytest

from ollm.domain.tools import RecordedResult
from ollm.services.session_export.markdown import (
    close_fence,
    describe_outcome,
    fence_text,
    format_arguments,
    render_markdown,
)
from tests.services.session_export.sources import TALK, Source, call

SHOWN = "2026-01-27 10:00 UTC"


def test_the_whole_document() -> None:
    text = "".join(render_markdown(TALK))

    assert text == (
        "# A title &lt;x>\n\n- Session: `s1`\n- Model: m (p)\n"
        f"- From {SHOWN} to {SHOWN}\n- Workspace: /w\n"
        f"\n## 1. User\n\n*{SHOWN}*\n\nLook <b>here</b>\n```py\nx\n```\n\n*(an image, image/png)*\n"
        f"\n## 2. Assistant (interrupted)\n\n*{SHOWN}*\n\n> *Thinking*\n>\n> hm\n> hm\n\nLooking.\n"
        '\n**Tool call: ls** (exit 2)\n\n```json\n{\n  "path": "."\n}\n```\n'
        "\n````\na ``` b\\x1b[31m\n````\n"
        f"\n## 4. Tool\n\n*{SHOWN}*\n\na fact\n"
        '\n**Tool call: other** (failed)\n\n```json\n{\n  "path": "."\n}\n```\n'
    )


def test_a_session_without_anything_has_a_head() -> None:
    assert "".join(render_markdown(Source())).startswith("# Session\n\n- Session: `s1`\n")


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


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    assert fence_text("a") == "```\na\n```"
    assert fence_text("``", "json") == "```json\n``\n```"
    assert fence_text("```") == "````\n```\n````"
    assert fence_text("` `` ``") == "```\n` `` ``\n```"
    assert fence_text("x ```` y") == "`````\nx ```` y\n`````"


def test_a_command_that_failed_is_not_ok() -> None:
    assert describe_outcome(call()) == "ok"
    assert describe_outcome(call(result=RecordedResult(llm_content="", exit_code=0))) == "ok"
    assert describe_outcome(call(result=RecordedResult(llm_content="", exit_code=3))) == "exit 3"
    assert describe_outcome(call(status="denied")) == "denied"
    assert format_arguments(call(args={"a": ["é"]})) == '{\n  "a": [\n    "é"\n  ]\n}'
