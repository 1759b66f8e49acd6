"""Entries of files of settings that are to go or to change."""

from pathlib import Path

import pytest

from ollm.services.request_reading.setting_entries import find_entry_steps, find_removal_command, list_entries
from tests.services.request_reading.applied_commands import apply_command

REGIONS = """\
{
  "default": "east",
  "regions": {
    "east": {
      "port": 1,
      "disks": [
        "ssd"
      ]
    },
    "west": {
      "port": 1,
      "kind": "a.b"
    }
  }
}
"""
SERVICES = "services:\n  web:\n    image: nginx\n    ports:\n      - 80\n\n  db:\n    image: postgres\nversion: 3\n"
APP = "top = 1\n[mail]\nenabled = true\n\n[cache]\nenabled = true\n"


def list_found(path: str, text: str) -> list[tuple[str, int, int, int]]:
    return [(found.name, found.depth, found.start, found.end) for found in list_entries(path, text.splitlines())]


def test_entries_are_found_by_depth_brackets_and_heads() -> None:
    assert list_found("a.json", REGIONS) == [
        ("regions", 2, 2, 14),
        ("east", 4, 3, 9),
        ("disks", 6, 5, 8),
        ("west", 4, 9, 13),
    ]
    assert list_found("a.yml", SERVICES) == [
        ("services", 0, 0, 8),
        ("web", 2, 1, 5),
        ("ports", 4, 3, 5),
        ("db", 2, 6, 8),
    ]
    assert list_found("a.ini", APP) == [("mail", 0, 1, 3), ("cache", 0, 4, 6)]
    assert list_found("a.ini", "a = 1\n") == []


@pytest.mark.parametrize(
    ("path", "text", "asked", "fact", "after"),
    [
        (
            "r.json",
            REGIONS,
            "remove the region west from r.json",
            "west is still in r.json.",
            REGIONS.replace('},\n    "west": {\n      "port": 1,\n      "kind": "a.b"\n    }', "}"),
        ),
        (
            "r.json",
            REGIONS,
            "In r.json drop east and run it.",
            "east is still in r.json.",
            REGIONS.replace('    "east": {\n      "port": 1,\n      "disks": [\n        "ssd"\n      ]\n    },\n', ""),
        ),
        (
            "r.json",
            REGIONS,
            "delete the kind of west in r.json",
            "kind is still in r.json.",
            REGIONS.replace('1,\n      "kind": "a.b"', "1"),
        ),
        (
            "r.json",
            REGIONS,
            "remove the west kind from r.json",
            "kind is still in r.json.",
            REGIONS.replace('1,\n      "kind": "a.b"', "1"),
        ),
        (
            "r.json",
            REGIONS,
            "remove kind and port from east in r.json",
            "port is still in r.json.",
            REGIONS.replace('"port": 1,\n      "disks"', '"disks"'),
        ),
        (
            "a.yml",
            SERVICES,
            "get rid of the web service in a.yml.",
            "web is still in a.yml.",
            "services:\n\n  db:\n    image: postgres\nversion: 3\n",
        ),
        (
            "a.yml",
            SERVICES,
            "Don't forget to remove the service 'db' from a.yml",
            "db is still in a.yml.",
            SERVICES.replace("\n  db:\n    image: postgres", ""),
        ),
        (
            "a.ini",
            APP,
            "drop the [mail] entry and run it (a.ini)",
            "mail is still in a.ini.",
            APP.replace("[mail]\nenabled = true\n", ""),
        ),
    ],
)
def test_the_step_is_a_command_that_does_it(
    tmp_path: Path, path: str, text: str, asked: str, fact: str, after: str
) -> None:
    (step,) = find_entry_steps(asked, {path: text})

    assert step.startswith(f"{fact} Now run sed -i ")
    assert apply_command(tmp_path, path, text, step) == after
    assert find_entry_steps(asked, {path: after}) == []


@pytest.mark.parametrize(
    "asked",
    [
        "remove west from r.py",
        "remove the port from r.json",  # of which?
        "remove everything but west from r.json",
        "remove the comments of west from r.json",
        "remove the comma behind the west entry from r.json",
        "remove north from r.json",
        "remove kind from north in r.json",  # not of west
        "How is west set in r.json?",
        "What happens when I remove west from r.json?",
        "rename east to north in r.json. Do not remove west.",
        "set the port of west to 1 in r.json without the need to drop east",
        "remove the west host from r.json",  # a part of it
    ],
)
def test_nothing_is_said_where_the_words_leave_it_open(asked: str) -> None:
    assert find_entry_steps(asked, {"r.json": REGIONS, "r.py": "west = 1\n"}) == []


def test_several_that_go_are_steps_of_their_own_and_one_that_went_from_one_of_two_places_is_none() -> None:
    asked = "remove web and db from a.yml, then run it"
    steps = find_entry_steps(asked, {"a.yml": SERVICES})

    assert [step.partition(" is still")[0] for step in steps] == ["web", "db"]
    twice = f"{SERVICES}old:\n  db:\n    image: b\n"
    left = SERVICES.replace("  db:\n    image: postgres\n", "") + "old:\n  db:\n    image: b\n"
    asked = "remove db from a.yml"
    assert find_entry_steps(asked, {"a.yml": twice}, {}) == []
    assert find_entry_steps(asked, {"a.yml": left}, {"a.yml": twice}) == []
    assert len(find_entry_steps(asked, {"a.yml": left}, {"a.yml": left})) == 1


def test_where_no_file_is_named_the_only_one_that_is_concerned_is_meant() -> None:
    asked = "remove the region west"

    assert len(find_entry_steps(asked, {"r.json": REGIONS, "r.py": "west = 1\n"})) == 1
    assert find_entry_steps(asked, {"r.json": REGIONS, "s.json": REGIONS}) == []
    assert len(find_entry_steps(f"{asked} from r.json", {"r.json": REGIONS, "s.json": REGIONS})) == 1


def test_a_path_with_a_blank_is_quoted(tmp_path: Path) -> None:
    (step,) = find_entry_steps("delete db from my settings.yml", {"my settings.yml": SERVICES})

    assert "db:" not in apply_command(tmp_path, "my settings.yml", SERVICES, step)


def test_an_entry_that_goes_and_nothing_else_is_a_command(tmp_path: Path) -> None:
    shown = f"r.json:\n```\n{REGIONS}```\n\na.yml:\n```\n{SERVICES}```"
    command = find_removal_command("delete the region west from r.json", shown)

    assert apply_command(tmp_path, "r.json", REGIONS, f"Now run {command}.") == REGIONS.replace(
        '},\n    "west": {\n      "port": 1,\n      "kind": "a.b"\n    }', "}"
    )
    assert find_removal_command("In a.yml, get rid of db", shown) == "sed -i '7,8d' a.yml"
    for asked in (
        "delete west from r.json and run it",
        "delete west and east from r.json",
        "Delete west from r.json. Then set the port to 1.",
        "run it, delete west from r.json",
        "if it is old, delete west from r.json",
        "delete west from s.json",
        "delete west",
        "should I delete west from r.json?",
    ):
        assert find_removal_command(asked, shown) == "", asked


def test_a_list_over_several_lines_is_not_taken_for_one_line() -> None:
    assert find_entry_steps("remove hosts from a.toml", {"a.toml": "[web]\nhosts = [\n  1,\n]\n"}) == []
    assert len(find_entry_steps("remove hosts from a.toml", {"a.toml": "[web]\nhosts = [1]\n"})) == 1


def test_no_gap_is_left_where_an_entry_was(tmp_path: Path) -> None:
    parts = {name: f"[{name}]\nx = 1\n" for name in ("east", "west", "north")}
    text = "\n".join(parts.values())
    for name in parts:
        (step,) = find_entry_steps(f"remove {name} from c.ini", {"c.ini": text})
        left = "\n".join(part for other, part in parts.items() if other != name)
        assert apply_command(tmp_path, "c.ini", text, step) == left
