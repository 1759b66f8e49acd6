"""A change that was made in another entry than the one that is named."""

import pytest

from ollm.runtime.calls.named_entries import move_to_named_entry

SERVICES = "services:\n  web:\n    image: nginx\n    depends_on:\n      - db\n  db:\n    image: postgres\n  cache:\n    image: redis\n"
MAIL = "[mail]\nenabled = true\n\n[cache]\nenabled = true\nseconds = 3\n"
REGIONS = '{\n  "east": {\n    "port": 1\n  },\n  "west": {\n    "port": 1,\n    "host": "w"\n  }\n}\n'
GIVE = "Give the db service a restart: always. Only db."


@pytest.mark.parametrize(
    ("path", "before", "after", "asked", "kept"),
    [
        (
            "a.yml",
            SERVICES,
            f"{SERVICES}    restart: always\n",
            GIVE,
            SERVICES.replace("postgres\n", "postgres\n    restart: always\n"),
        ),
        (
            "a.yaml",
            SERVICES,
            SERVICES.replace("redis", "redis:8"),
            "Set the image of db in services to redis:8",
            SERVICES.replace("postgres", "redis:8"),
        ),
        (
            "app.ini",
            MAIL,
            MAIL.replace("true", "false", 1),
            "turn off the cache in app.ini",
            MAIL.replace("[cache]\nenabled = true", "[cache]\nenabled = false"),
        ),
        (
            "app.toml",
            MAIL,
            MAIL.replace("enabled = true\n\n", "enabled = true\nsize = 1\n\n"),
            "add size = 1 to the cache",
            f"{MAIL}size = 1\n",
        ),
        (
            "r.json",
            REGIONS,
            REGIONS.replace('"port": 1\n', '"port": 2\n'),
            "set the port of west to 2",
            REGIONS.replace('"port": 1,', '"port": 2,'),
        ),
    ],
)
def test_the_only_change_goes_to_the_entry_that_is_named(
    path: str, before: str, after: str, asked: str, kept: str
) -> None:
    assert move_to_named_entry(path, before, after, asked) == kept
    assert move_to_named_entry(path, before, kept, asked) == kept


@pytest.mark.parametrize(
    ("path", "after", "asked"),
    [
        ("a.py", f"{SERVICES}    restart: always\n", GIVE),
        ("a.yml", f"{SERVICES}    restart: always\n", "Give cache and db a restart: always."),
        ("a.yml", f"{SERVICES}    restart: always\n", "Restart always what is last."),
        ("a.yml", f"{SERVICES}    restart: always\n", "Give web and db a restart: always."),
        ("a.yml", f"{SERVICES}  queue:\n    image: db\n", "Add a queue with the image db, not in db."),
        ("a.yml", f"{SERVICES}    image: postgres\n", GIVE),
        ("a.yml", f"{SERVICES}    restart: always\n".replace("nginx", "caddy"), GIVE),
        ("a.yml", SERVICES.replace("redis", "redis\n    a: 1\n    b: 2").replace("nginx", "x"), GIVE),
        ("a.yml", SERVICES.replace("    image: redis", "    picture: redis"), GIVE),
        ("a.yml", SERVICES.replace("      - db\n", "      - db\n      - cache\n"), GIVE),
    ],
)
def test_other_changes_stay_where_they_are(path: str, after: str, asked: str) -> None:
    assert move_to_named_entry(path, SERVICES, after, asked) == after


def test_a_new_file_and_lines_of_json_that_would_need_commas_stay() -> None:
    added = REGIONS.replace('"port": 1\n', '"port": 1,\n    "zone": 4\n')

    assert move_to_named_entry("a.yml", "", "a: 1\n", GIVE) == "a: 1\n"
    assert move_to_named_entry("r.json", REGIONS, added, "add zone 4 to west") == added
