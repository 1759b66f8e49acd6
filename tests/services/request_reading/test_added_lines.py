"""A line that is spelled out and belongs into one entry."""

from pathlib import Path

import pytest

from ollm.services.request_reading.added_lines import find_line_command, find_line_steps
from tests.services.request_reading.applied_commands import apply_command

COMPOSE = """\
services:
  web:
    image: nginx
    depends_on:
      - db
  db:
    image: postgres
    environment:
      USER: app

  cache:
    image: redis
    restart: never
volumes:
  - one
"""
APP = "[mail]\nport = 1\n\n[cache]\nport = 2 # of it\n"
REGIONS = '{\n  "east": {\n    "port": 1\n  },\n  "west": {\n    "port": 1,\n    "hosts": [\n      "a"\n    ]\n  }\n}\n'
CSS = "body {\n  margin: 0;\n}\n.card {\n  color: red;\n}\n"


@pytest.mark.parametrize(
    ("path", "text", "asked", "old", "new"),
    [
        (
            "c.yml",
            COMPOSE,
            "give the db service a `restart: always` in the compose file. Only db, not the others.",
            "USER: app\n",
            "USER: app\n    restart: always\n",
        ),
        ("c.yml", COMPOSE, "add restart: always to web in c.yml", "- db\n", "- db\n    restart: always\n"),
        ("c.yml", COMPOSE, "In c.yml, put 'restart: always' under cache.", "restart: never", "restart: always"),
        ("a.ini", APP, "Add `debug = true` to the [mail] section of a.ini", "= 1\n", "= 1\ndebug = true\n"),
        ("a.toml", APP, "set port = 3 in cache", "port = 2 # of it", "port = 3"),
        ("s.css", CSS, "add `padding: 1rem;` to .card in s.css", "red;\n", "red;\n  padding: 1rem;\n"),
        (
            "c.yml",
            COMPOSE,
            "Add the key timeout with the value 30 under web in c.yml.",
            "- db\n",
            "- db\n    timeout: 30\n",
        ),
        ("a.ini", APP.replace(" = ", "="), "add a timeout of 30 to cache", "of it\n", "of it\ntimeout=30\n"),
        ("a.toml", APP, "add a mode of fast to the cache section", "of it\n", 'of it\nmode = "fast"\n'),
        ("r.json", REGIONS, "add a zone of b to east in r.json", "1\n", '1,\n    "zone": "b"\n'),
        ("r.json", REGIONS, 'add `"zone": 4` to the entry west', "]\n", '],\n    "zone": 4\n'),
        ("r.json", REGIONS, "set `port: 5` in west", '1,\n    "hosts', '5,\n    "hosts'),
        ("s.css", CSS, "give .card a border-radius of 8px in s.css.", "red;\n", "red;\n  border-radius: 8px;\n"),
        ("s.css", CSS, "add padding: 1rem to the body", "0;\n", "0;\n  padding: 1rem;\n"),
    ],
)
def test_the_command_puts_it_there(tmp_path: Path, path: str, text: str, asked: str, old: str, new: str) -> None:
    command = find_line_command(asked, f"{path}:\n```\n{text}```")
    after = apply_command(tmp_path, path, text, command)

    assert after == text.replace(old, new)
    (step,) = find_line_steps(asked, {path: text})
    assert step.endswith(f"Now run {command}.")
    assert find_line_steps(asked, {path: after}) == []


@pytest.mark.parametrize(
    "asked",
    [
        "add `restart: always` to c.yml",
        "add `restart: always` to all services",
        "add `restart: always` to web and db",
        "add `restart: always` to every service but db",
        "add `restart: always` and `tty: true` to db",
        "add `restart = always` to db",
        "add `key: value` to volumes",  # a list
        "add `image: postgres` to db",  # it has
        "add `environment: none` to db",  # it has more of that
        "Why is there no `restart: always` in db?",
        "do not add `restart: always` to db",
        "remove `restart: never` from cache",
        "add a restart policy to db",
        "add `restart: always` to db in d.yml",
        "give db a set of 3 replicas",
    ],
)
def test_other_words_are_none(asked: str) -> None:
    assert find_line_command(asked, f"c.yml:\n```\n{COMPOSE}```") == ""
    assert find_line_steps(asked, {"c.yml": COMPOSE}) == []


def test_what_comes_after_another_order_is_a_step_and_no_first_command() -> None:
    asked = "Run it, then add `restart: always` to db"

    assert find_line_command(asked, f"c.yml:\n```\n{COMPOSE}```") == ""
    assert find_line_steps(asked, {"c.yml": COMPOSE, "a.json": "{}"})[0].startswith(
        "restart: always is not under db in"
    )
    assert find_line_steps(asked, {"c.yml": COMPOSE, "b.yml": COMPOSE}) == [], "in which?"
