"""What went with a request, read back."""

from __future__ import annotations

from ollm.services.request_reading.answer_beginnings import begin_first_step
from ollm.services.request_reading.primed_request import prime_request
from ollm.services.request_reading.shown_files import find_shown_text, list_shown_names, list_shown_texts

COMPOSE = "services:\n  web:\n    port: 80\n  db:\n    port: 5432\n"
ASKED = "Remove the db service from c.yml, see README.md."


def prime(files: dict[str, str]) -> str:
    return f"\n\n{prime_request(ASKED, sorted(files), files.get, 8_000).text}"


def test_names_and_texts_are_read_as_they_were_shown() -> None:
    primed = prime({"c.yml": COMPOSE, "README.md": "# App\n"})

    assert list_shown_names(primed) == ["README.md", "c.yml"]
    assert dict(list_shown_texts(primed)) == {"c.yml": COMPOSE, "README.md": "# App\n"}
    assert find_shown_text("c.yml", primed) == COMPOSE.rstrip()
    assert find_shown_text("README.md", primed) == "# App"
    assert find_shown_text("yml", primed) == ""


def test_of_many_files_the_names_that_were_shown_are_known() -> None:
    primed = prime({"c.yml": COMPOSE} | {f"a_{number:02}.txt": "x\n" for number in range(60)})

    assert len(list_shown_names(primed)) == 40
    assert list_shown_names(primed)[-1] == "c.yml"
    assert [path for path, _ in list_shown_texts(primed)] == ["c.yml"]


def test_what_a_page_quotes_is_not_taken_for_the_file() -> None:
    page = "# App\n\n```sh\nup\n```\n\nc.yml:\n```\nx: 1\nservices:\n  db:\n    port: 1\n```\n"
    shown = prime({"README.md": page})
    both = prime({"README.md": page, "c.yml": COMPOSE})

    assert [path for path, _ in list_shown_texts(shown)] == ["README.md"], "there is no such file"
    assert [path for path, _ in list_shown_texts(both)] == ["README.md"], "which of them?"
    assert begin_first_step(ASKED.replace(", see README.md", ""), shown) == ""
