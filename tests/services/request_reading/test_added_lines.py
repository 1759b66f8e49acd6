"""A line that is spelled out and belongs into one entry."""

import subprocess
from pathlib import Path

import pytest

from ollm.services.request_reading.added_lines import find_line_command, find_line_steps

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
CSS = "body {\n  margin: 0;\n}\n.card {\n  color: red;\n}\n"


def apply(folder: Path, path: str, text: str, command: str) -> str:
    (folder / path).write_text(text)
    subprocess.run(["sh", "-c", command], cwd=folder, check=True)
    return (folder / path).read_text()


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
        ("s.css", CSS, "add padding: 1rem to the body", "0;\n", "0;\n  padding: 1rem;\n"),
    ],
)
def test_the_command_puts_it_there(tmp_path: Path, path: str, text: str, asked: str, old: str, new: str) -> None:
    command = find_line_command(asked, f"{path}:\n```\n{text}```")
    after = apply(tmp_path, path, text, command)

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
