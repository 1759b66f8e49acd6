"""The book of grants: what is kept, listed and taken back."""

from pathlib import Path

import pytest

from ollm.domain.errors import StorageError, UsageError
from ollm.policy.grants import GrantBook, parse_grant


def test_always_is_kept_on_disk_and_session_is_not(tmp_path: Path):
    book = GrantBook(tmp_path / "home/grants.yaml")
    book.add("shell:npm run test", "always")
    book.add("write_file:src/**", "session")
    book.add("web_fetch:x.org", "once")

    assert [str(grant) for grant in book.list_grants()] == ["shell:npm run test", "write_file:src/**"]
    assert [str(grant) for grant in GrantBook(tmp_path / "home/grants.yaml").list_grants()] == ["shell:npm run test"]
    assert (tmp_path / "home/grants.yaml").stat().st_mode & 0o777 == 0o600


def test_a_grant_is_kept_once_and_survives_odd_characters(tmp_path: Path):
    book = GrantBook(tmp_path / "grants.yaml")
    odd = "shell:echo 'a: b' # \"c\" \\ {x}\n[y] 漢"
    for _ in range(2):
        book.add(odd, "always")
        book.add("shell:- x", "session")

    assert [str(grant) for grant in GrantBook(tmp_path / "grants.yaml").list_saved()] == [odd]
    assert len(book.list_grants()) == 2


def test_grants_are_taken_back_by_number_or_all(tmp_path: Path):
    book = GrantBook(tmp_path / "grants.yaml")
    for text in ("a", "b", "c"):
        book.add(text, "always")

    assert str(book.revoke(2)) == "b"
    assert [str(grant) for grant in book.list_saved()] == ["a", "c"]
    with pytest.raises(UsageError, match="no grant 3"):
        book.revoke(3)
    assert book.revoke_all() == 2
    assert book.revoke_all() == 0


@pytest.mark.parametrize(
    "text", ["", ":", "shell:", "shell: ", "nonsense::", "shell:=", "shell: : ", "a b", "../x", "shell rm"]
)
def test_what_is_no_grant_is_refused_with_the_right_form(text: str):
    with pytest.raises(UsageError, match="TOOL:TEXT"):
        parse_grant(text)


@pytest.mark.parametrize("content", ["grants: 5", "[", "- a", "grants: [1, 2]"])
def test_a_damaged_file_is_reported_by_name(tmp_path: Path, content: str):
    (tmp_path / "grants.yaml").write_text(content)

    with pytest.raises(StorageError, match=r"grants\.yaml"):
        GrantBook(tmp_path / "grants.yaml").list_grants()
