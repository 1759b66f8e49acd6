"""Which entries a request names."""

import pytest

from ollm.services.request_reading.entry_names import (
    MAX_REQUEST_CHARS,
    is_meant_alone,
    is_mentioned,
    says_of_many,
    strip_kept_parts,
)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("body", "The body's background in style.css should be #fafafa instead of white."),
        ("body", "make the body background red"),
        ("body", "Set the background of the body to red"),
        (".card", "the card rule gets a red background"),
        (".card", "in `.card` make the background red"),
        (".card, .tile", "change the background for .tile to red"),
        ("us-east", "set the timeout of us-east to 45"),
        ("db", "Could you give the db service a `restart: always`? Only db, not the others."),
        ("db", "add restart: always to db"),
        ("db", "for the service db, restart: always"),
        ("db", "restart: always under db: please"),
        ("server", "Under [server] the port must be 9000"),
        ("default", "in the [default] section set the port to 1"),
        ("staging", "port of staging: 8081"),
        ("staging", "remove the debug flag from staging"),
        ("staging", "for 'staging' use port 8081"),
        ("staging", "set the staging port to 3"),
        ("cache", "turn off the cache"),
        ("DB", "the DB entry is wrong, its port must be 5"),
        ("alice", "alice's port is 31 now"),
    ],
)
def test_an_entry_is_named(name: str, asked: str) -> None:
    words = strip_kept_parts(asked)

    assert is_meant_alone(name, "services", ("port", "background"), words)
    assert is_mentioned(name, words)
    assert not says_of_many(words)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("a", "give the page a red background"),
        ("default", "set the default port to 3 in default.yml"),
        ("staging", "set port in staging.yml to 3"),
        ("production", "set the port of the production database to 3"),
        ("db", "set the host to db"),
        ("db", "set the port to 3, but not in db"),
        ("db", "leave db alone and set the port to 3"),
        ("db", "Don't touch the db service."),
        ("db", "set the port to 3 except for db"),
        ("db", "set the port to 3 instead of that of db"),
        ("db", "set the port of db-old to 3"),
        ("db", "set the port of db.main to 3"),
        ("build", "set retries to 3 so the build does not fail"),
    ],
)
def test_a_word_that_occurs_by_chance_names_none(name: str, asked: str) -> None:
    assert not is_meant_alone(name, "jobs", ("timeout",), strip_kept_parts(asked))


@pytest.mark.parametrize(
    "asked",
    [
        "set the port of db to 3, and of all others",
        "the port should be the same as in db",
        "set the timeout like in db",
        "copy the port of db to cache",
        "set both ports in db",
        "also in db",
        "not only in db",
        "change the port everywhere, for db too",
        "set the port of db to 3" + "." * MAX_REQUEST_CHARS,
    ],
)
def test_words_that_hold_for_more_than_one(asked: str) -> None:
    assert says_of_many(strip_kept_parts(asked))


def test_what_is_to_stay_does_not_count() -> None:
    words = strip_kept_parts("I'd like the port of db in app.yml to be 3. Leave web and all the others as they are.")

    assert not says_of_many(words)
    assert not is_mentioned("web", words)
    assert not is_mentioned("app", words)
    assert is_mentioned(".nav a", "the color of nav")
    assert not is_mentioned("web-worker", "the port of web")
