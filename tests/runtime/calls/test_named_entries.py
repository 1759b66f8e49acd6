"""A change that was made in another entry than the one that is named."""

import pytest

from ollm.runtime.calls.named_entries import describe_misplaced, keep_to_named_entry

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
    assert keep_to_named_entry(path, before, after, asked) == kept
    assert keep_to_named_entry(path, before, kept, asked) == kept


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
        ("a.yml", SERVICES.replace("redis", "redis:8"), GIVE),  # nobody spoke of an image
        ("a.yml", f"{SERVICES}    tty: x\n", GIVE),
        ("a.yml", SERVICES.replace("      - db\n", "      - db\n      - cache\n"), GIVE),
    ],
)
def test_other_changes_stay_where_they_are(path: str, after: str, asked: str) -> None:
    assert keep_to_named_entry(path, SERVICES, after, asked) == after


def test_a_new_file_and_lines_of_json_that_would_need_commas_stay() -> None:
    added = REGIONS.replace('"port": 1\n', '"port": 1,\n    "zone": 4\n')

    assert keep_to_named_entry("a.yml", "", "a: 1\n", GIVE) == "a: 1\n"
    assert keep_to_named_entry("r.json", REGIONS, added, "add zone 4 to west") == added


CSS = "body {\n  margin: 0;\n  background: white;\n}\n\n.card {\n  background: white;\n}\n\na { color: teal; background: white }\n"
STAGES = "[dev]\nport = 1\n\n[staging]\nport = 1 # no\n\n[prod]\nport = 2\n"
BOTH = "east:\n  db:\n    port: 1\n  web:\n    port: 1\nwest:\n  db:\n    port: 1\n  web:\n    port: 1\n"
USERS = '[{"name": "al", "age": 3}, {"name": "bo", "age": 3}]\n'
WHITE = "The body's background in style.css should be #fafafa instead of white."


@pytest.mark.parametrize(
    ("path", "before", "after", "asked", "kept"),
    [
        (
            "style.css",
            CSS,
            CSS.replace("background: white", "background: #fafafa"),
            WHITE,
            CSS.replace("background: white", "background: #fafafa", 1),
        ),
        (
            "style.css",
            CSS,
            CSS.replace("background: white }", "background: #fafafa }"),
            WHITE,
            CSS.replace("background: white", "background: #fafafa", 1),
        ),
        (
            "style.css",
            CSS,
            CSS.replace("white;\n}", "white;\n  border: 0;\n}").replace("white; }", "white }"),
            "Give the card a border of 0",
            CSS.replace("white;\n}\n\na", "white;\n  border: 0;\n}\n\na"),
        ),
        (
            "style.css",
            CSS,
            CSS.replace("margin: 0;", "margin: 0;\n  border: 0;"),
            "add border: 0 to .card",
            CSS.replace("white;\n}\n\na", "white;\n  border: 0;\n}\n\na"),
        ),
        (
            "a.ini",
            STAGES,
            STAGES.replace("= 1", "= 8").replace("= 2", "= 8"),
            "port of staging is to be 8",
            STAGES.replace("= 1 #", "= 8 #"),
        ),
        (
            "a.ini",
            STAGES,
            STAGES.replace("= 1", "= 8").replace("= 2", "= 8"),
            "set the port of staging and prod to 8, not in dev",
            STAGES.replace("= 1 #", "= 8 #").replace("= 2", "= 8"),
        ),
        (
            "a.yml",
            BOTH,
            BOTH.replace("port: 1", "port: 5"),
            "in east set the port of db to 5",
            BOTH.replace("port: 1", "port: 5", 1),
        ),
        (
            "a.yml",
            SERVICES,
            SERVICES.replace("nginx", "nginx\n    restart: always").replace("gres\n", "gres\n    restart: always\n"),
            GIVE,
            SERVICES.replace("gres\n", "gres\n    restart: always\n"),
        ),
        ("u.json", USERS, USERS.replace("3", "4"), "bo's age is 4 now", USERS.replace("3}]", "4}]")),
        ("u.json", USERS, USERS.replace("3", "4", 1), "bo's age is 4 now", USERS.replace("3}]", "4}]")),
        (
            "r.json",
            REGIONS,
            REGIONS.replace('"port": 1\n', '"port": 1,\n    "zone": 4\n').replace('"w"', '"w",\n    "zone": 4'),
            "west gets a zone of 4 in the entry west",
            REGIONS.replace('"w"', '"w",\n    "zone": 4'),
        ),
    ],
)
def test_what_entries_get_that_are_not_named_is_taken_back(
    path: str, before: str, after: str, asked: str, kept: str
) -> None:
    assert after not in (before, kept)
    assert keep_to_named_entry(path, before, after, asked) == kept
    assert keep_to_named_entry(path, before, kept, asked) == kept


@pytest.mark.parametrize(
    ("path", "before", "after", "asked"),
    [
        ("style.css", CSS, CSS.replace("white", "red"), "make the background of all of them red, in body too"),
        ("style.css", CSS, CSS.replace("white", "red"), "the background should be red"),
        ("style.css", CSS, CSS.replace("white", "red"), "change white to red, with a space before it"),
        ("style.css", CSS, CSS.replace("white", "red"), "make the backgrounds of body, card and a red"),
        ("style.css", CSS, CSS.replace("teal", "red").replace("0", "1"), "the body's color should be red"),
        ("a.ini", STAGES, STAGES.replace("= 1", "= 8"), "the port of dev and of staging should be 8"),
        ("a.ini", STAGES, STAGES.replace("= 1", "= 2"), "use the port of prod everywhere"),
        ("a.ini", STAGES, STAGES.replace("= 1", "= 2"), "dev and staging get the same port as in prod"),
        ("a.ini", STAGES, STAGES.replace("= 1\n", "= 7\n").replace("= 1 ", "= 9 "), "set staging's port to 9"),
        ("a.yml", BOTH, BOTH.replace("db:\n    port: 1", "db:\n    port: 5"), "set the port of db to 5"),
        ("a.yml", BOTH, f"{BOTH}north:\n  db:\n    port: 1\n", "add north with the db of east"),
        ("a.css.txt", CSS, CSS.replace("background: white", "background: #fafafa"), WHITE),
    ],
)
def test_changes_that_may_be_meant_stay(path: str, before: str, after: str, asked: str) -> None:
    assert after != before
    assert keep_to_named_entry(path, before, after, asked) == after


@pytest.mark.parametrize(
    ("path", "before", "after", "asked", "told"),
    [
        (
            "a.yml",
            SERVICES,
            SERVICES.replace("      - db\n", "      - db\n      - cache\n"),
            GIVE,
            "web would change in a.yml, and db would not",
        ),
        (
            "a.ini",
            STAGES,
            STAGES.replace("port = 1\n", "port = 1\nhost = a\n").replace("= 2", "= 3"),
            "staging needs a host",
            "",
        ),
        (
            "a.ini",
            STAGES,
            STAGES.replace("port = 1\n", "port = 1\nhost = a\n").replace("= 2", "= 3"),
            "give staging a host",
            "dev and prod would change in a.ini, and staging would not",
        ),
        ("a.yml", SERVICES, f"{SERVICES}  queue:\n    image: a\n", GIVE, ""),
        (
            "a.yml",
            SERVICES,
            SERVICES.replace("    image: nginx\n", ""),
            GIVE,
            "web would change in a.yml, and db would not",
        ),
        ("a.yml", SERVICES, SERVICES.replace("postgres", "b").replace("redis", "c"), GIVE, ""),
        ("a.yml", SERVICES, SERVICES.replace("redis", "c"), "Give the db service what the cache has.", ""),
        ("a.yml", SERVICES, SERVICES.replace("redis", "c"), "Give db and all others a name.", ""),
        ("a.yml", SERVICES, SERVICES, GIVE, ""),
        ("a.py", SERVICES, SERVICES.replace("redis", "c"), GIVE, ""),
        (
            "style.css",
            CSS,
            CSS.replace("0;", "1;"),
            "Give the .card rule a border.",
            "body would change in style.css, and .card would not",
        ),
    ],
)
def test_a_block_that_changes_other_entries_than_the_one_that_is_named(
    path: str, before: str, after: str, asked: str, told: str
) -> None:
    assert describe_misplaced(path, before, after, asked) == told
