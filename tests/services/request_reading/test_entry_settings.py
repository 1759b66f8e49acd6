"""Values that one entry is to get."""

from pathlib import Path

import pytest

from ollm.services.request_reading.answer_beginnings import begin_first_step
from ollm.services.request_reading.entry_settings import (
    find_entry_command,
    find_value_steps,
    is_about_entry,
    speaks_of_entry,
)
from tests.services.request_reading.applied_commands import apply_command

CSS = "body {\n  margin: 0;\n  background: white;\n}\n\n.card {\n  background: white;\n}\n"
CONF = "[dev]\nport = 80\nhost = a.b\ndebug = true\n\n[staging]\nport = 80 # as dev\nhost = a.b\ndebug = true\n"
REGIONS = (
    '{\n  "default": "east",\n  "regions": {\n    "east": {\n      "port": 1,\n      "kind": "a"\n    },\n'
    '    "west": {\n      "port": 1,\n      "kind": "a",\n      "tls": false\n    }\n  }\n}\n'
)
COMPOSE = "services:\n  web:\n    deploy:\n      replicas: 1\n  cache:\n    image: a\n    deploy:\n      replicas: 1\n"
APP = "[mail]\nenabled = True\n\n[cache]\nenabled = True\nsize = 1\n"
CI = "jobs:\n  lint:\n    timeout: 10\n  test:\n    timeout: 10\n"
BOTH = "east:\n  db:\n    port: 1\nwest:\n  db:\n    port: 1\n"
USERS = '[\n  {"name": "al", "role": "user"},\n  {"name": "bo", "role": "user"}\n]\n'
TOML = '[servers.alpha]\nip = "1"\n\n[servers.beta]\nip = "1"\nmax_age = 3\n'
FILES = {
    "style.css": CSS,
    "conf.ini": CONF,
    "r.json": REGIONS,
    "app.toml": TOML,
    "c.yaml": COMPOSE,
    "app.ini": APP,
    "b.yml": BOTH,
    "ci.yml": CI,
    "u.json": USERS,
}


def show(path: str) -> str:
    return f"\n\nFiles here: {', '.join(FILES)}\n\n{path}:\n```\n{FILES[path]}```"


@pytest.mark.parametrize(
    ("path", "asked", "old", "new"),
    [
        (
            "style.css",
            "The body's background in style.css should be #fafafa instead of white.",
            "0;\n  background: white",
            "0;\n  background: #fafafa",
        ),
        (
            "style.css",
            "change the background of the card from white to ivory in style.css",
            "card {\n  background: white",
            "card {\n  background: ivory",
        ),
        ("conf.ini", "set the port of staging to 8081", "port = 80 #", "port = 8081 #"),
        ("conf.ini", "Under [staging] the port must be 8081 (conf.ini).", "port = 80 #", "port = 8081 #"),
        ("conf.ini", "staging's port has to be 8081, leave dev as it is", "port = 80 #", "port = 8081 #"),
        ("conf.ini", "for staging, change port to 8081", "port = 80 #", "port = 8081 #"),
        ("conf.ini", "turn debug off for dev in conf.ini", "debug = true\n\n", "debug = false\n\n"),
        ("conf.ini", "disable debug in the dev section", "debug = true\n\n", "debug = false\n\n"),
        ("r.json", "set the kind of west to b in r.json", '"kind": "a",', '"kind": "b",'),
        ("r.json", "enable tls for west", "false", "true"),
        ("r.json", "In r.json, raise the east port to 5", '1,\n      "kind": "a"\n', '5,\n      "kind": "a"\n'),
        (
            "c.yaml",
            "In c.yaml set replicas of the service cache to 5.",
            "a\n    deploy:\n      replicas: 1",
            "a\n    deploy:\n      replicas: 5",
        ),
        ("app.ini", "turn off the cache in app.ini please", "True\nsize", "False\nsize"),
        ("app.ini", "disable mail", "True\n\n", "False\n\n"),
        ("ci.yml", "set the timeout for the test job to 20", "test:\n    timeout: 10", "test:\n    timeout: 20"),
        ("b.yml", "in west, set the port of db to 5", "west:\n  db:\n    port: 1", "west:\n  db:\n    port: 5"),
        ("u.json", "set bo's role to admin in u.json", '"bo", "role": "user"', '"bo", "role": "admin"'),
        ("app.toml", "set the ip of alpha to 3", 'alpha]\nip = "1"', 'alpha]\nip = "3"'),
        ("app.toml", "set the ip for `servers.beta` to '2' in app.toml", '1"\nmax', '2"\nmax'),
    ],
)
def test_the_command_gives_the_entry_its_value(tmp_path: Path, path: str, asked: str, old: str, new: str) -> None:
    command = find_entry_command(asked, show(path))
    after = apply_command(tmp_path, path, FILES[path], command)

    assert after == FILES[path].replace(old, new)
    assert after != FILES[path]
    (step,) = find_value_steps(asked, {path: FILES[path]})
    assert step.endswith(f"Now run {command}.")
    assert find_value_steps(asked, {path: after}) == []


def test_two_values_of_one_entry(tmp_path: Path) -> None:
    asked = "set port to 81 and host to c.d in staging"
    after = apply_command(tmp_path, "conf.ini", FILES["conf.ini"], find_entry_command(asked, show("conf.ini")))

    assert after == CONF.replace("80 # as dev\nhost = a.b", "81 # as dev\nhost = c.d")


@pytest.mark.parametrize(
    "asked",
    [
        "set the port to 8081",
        "set the port of staging and dev to 8081",
        "set the port to 8081 everywhere, in staging too",
        "set the port of prod to 8081",
        "set the port of staging to that of dev",
        "set the port of staging to 8081 seconds",
        "set the path of staging to 8081",
        "set the port of staging from 70 to 8081",
        "set the port of staging to 80",
        "should the port of staging be 8081?",
        "the port of staging should not be 8081",
        "set the port of staging to 8081 and the path to x",
        "rename staging to stage in conf.ini",
        "rename host to hostname in the dev section",
        "set the port of staging to 8081 in other.ini",
        "turn off the lamp",
    ],
)
def test_other_words_say_no_value(asked: str) -> None:
    assert find_entry_command(asked, show("conf.ini")) == ""
    assert find_value_steps(asked, {"conf.ini": CONF}) == []


def test_a_step_that_names_a_job_test_is_no_program() -> None:
    from ollm.services.request_reading.plain_changes import find_plain_steps

    assert len(find_plain_steps("set the timeout for the test job to 20", {"ci.yml": CI}, {})) == 1


def test_each_of_several_orders_is_a_step() -> None:
    asked = "in r.json set the kind of west to b and raise east's port to 5, then remove tls. Change nothing else."
    steps = find_value_steps(asked, {"r.json": REGIONS, "conf.ini": CONF})

    assert [step.partition(". Now run sed -i '")[0] for step in steps] == [
        'kind of west is "a" in r.json',
        "port of east is 1 in r.json",
    ]
    assert find_entry_command(asked, show("r.json")) == ""
    assert find_value_steps(f"{asked} Do the same for the others.", {"r.json": REGIONS}) == []


def test_of_two_entries_of_one_name_none_is_meant() -> None:
    assert find_entry_command("set the port of db to 5", show("b.yml")) == ""
    assert find_value_steps("set the port of db to 5", {"b.yml": BOTH}) == []


def test_another_order_makes_it_a_step_and_types_stay() -> None:
    assert find_entry_command("run it and set the port of staging to 1", show("conf.ini")) == ""
    assert len(find_value_steps("run it and set the port of staging to 1", {"conf.ini": CONF})) == 1
    assert find_entry_command("set the port of west to high in r.json", show("r.json")) == ""
    assert find_entry_command("set the max_age of beta to 1h in app.toml", show("app.toml")) == ""


def test_a_word_that_is_to_become_another_in_one_entry_is_not_replaced_in_the_whole_file() -> None:
    asked = "replace white with ivory in the card rule of style.css"

    assert speaks_of_entry(asked, show("style.css"))
    assert begin_first_step(asked, show("style.css"), whole=True) == ""
    assert begin_first_step("set the body background to red in style.css", show("style.css"), whole=True).startswith(
        "```bash\nsed -i '3s/^  background: white;$/  background: red;/'"
    )
    everywhere = "replace white with ivory in style.css"
    assert not speaks_of_entry(everywhere, show("style.css"))
    assert begin_first_step(everywhere, show("style.css")).startswith("```bash\nsed -i 's/")
    assert not is_about_entry("rename `staging` to stage in conf.ini", "conf.ini", CONF)
    assert is_about_entry("rename port to listen in the staging section of conf.ini", "conf.ini", CONF)
