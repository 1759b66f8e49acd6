"""Commands a person keeps as files."""

from pathlib import Path

import pytest

from ollm.runtime.commands.custom import CustomCommands, split_front_matter
from tests.runtime.talking import Talking


async def test_a_text_of_ones_own_is_sent_with_its_arguments(talking: Talking) -> None:
    async with talking(["ok"]) as talk:
        (talk.home / "commands").mkdir(parents=True)
        (talk.home / "commands" / "review.md").write_text("Review $1 for $ARGUMENTS.\n")
        await talk.say((await talk.run("/review a.py speed")).argument)

    assert talk.server.chats[0]["messages"][-1]["content"] == "Review a.py for a.py speed.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "ours").mkdir()
    return tmp_path


def commands(folder: Path) -> CustomCommands:
    return CustomCommands((folder / "theirs", folder / "ours", folder / "missing"))


def test_the_first_folder_wins_and_names_are_plain(folder: Path) -> None:
    (folder / "theirs" / "review.md").write_text("theirs")
    (folder / "ours" / "review.md").write_text("ours")
    (folder / "ours" / "tidy_up-2.md").write_text("x")
    for odd in ("Upper.md", ".hidden.md", "notes.txt", "a b.md", "x" * 65 + ".md"):
        (folder / "ours" / odd).write_text("x")
    (folder / "ours" / "dir.md").mkdir()

    made = commands(folder)

    assert made.list_names() == ["review", "tidy_up-2"]
    assert made.expand("review", "") == "theirs"
    for name in ("Upper", "../theirs/review", "dir", "missing", ""):
        assert made.expand(name, "") is None


def test_a_link_is_not_read(folder: Path) -> None:
    (folder / "secret").write_text("secret")
    (folder / "ours" / "link.md").symlink_to(folder / "secret")

    assert commands(folder).expand("link", "") is None


@pytest.mark.parametrize(
    ("text", "arguments", "sent"),
    [
        ("Review it.", "", "Review it."),
        ("Review it.\n", "a b", "Review it.\n\na b"),
        ("Review $ARGUMENTS now", "a b", "Review a b now"),
        ("$1 and $2 and $3", "a b", "a and b and "),
        ("$1 and $2", "\"a b\" 'c d'", "a b and c d"),
        ("$1 and $2", "don't say \"no", "don't and say"),
        ("$1", "", ""),
        ("costs $10", "x", "costs x0"),
    ],
)
def test_arguments_stand_where_the_text_says_or_at_its_end(folder: Path, text: str, arguments: str, sent: str) -> None:
    (folder / "ours" / "c.md").write_text(text)

    assert commands(folder).expand("c", arguments) == sent


@pytest.mark.parametrize(
    ("text", "fields", "body"),
    [
        ("plain", {}, "plain"),
        ("---\ndescription: 'Do it'\n# note\n inner: x\nempty\n---\n\nBody\n", {"description": "Do it"}, "Body\n"),
        ("\ufeff---\na: b\n---\nBody", {"a": "b"}, "Body"),
        ("---\nno end", {}, "---\nno end"),
        ("text\n---\na: b\n---\n", {}, "text\n---\na: b\n---\n"),
    ],
)
def test_front_matter_is_told_from_the_text(text: str, fields: dict[str, str], body: str) -> None:
    assert split_front_matter(text) == (fields, body)


def test_a_command_is_described_by_its_front_matter_or_its_first_line(folder: Path) -> None:
    (folder / "ours" / "a.md").write_text("---\ndescription: What it does\n---\n# Title\n")
    (folder / "ours" / "b.md").write_text("\n\n## The title \nmore")
    (folder / "ours" / "c.md").write_text("x" * 300)

    made = commands(folder)

    assert (made.describe("a"), made.describe("b")) == ("What it does", "The title")
    assert made.describe("c") == "x" * 200
    assert made.describe("missing") == ""


def test_a_very_long_text_is_sent_up_to_its_limit(folder: Path) -> None:
    (folder / "ours" / "c.md").write_text("x" * 100_001)

    assert commands(folder).expand("c", "") == "x" * 100_000
