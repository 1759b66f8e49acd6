"""Fetching a model: progress for people and for logs, and the question before it."""

import io
import sys

import pytest

from ollm.cli.model_download import format_size, offer_missing_model, show_progress
from ollm.domain.errors import NoServerError
from ollm.providers.local_models.model_files import ModelFileMissingError


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 MB"), (1_499_999, "1 MB"), (999_999_999, "1000 MB"), (1_000_000_000, "1.0 GB"), (4_250_000_000, "4.2 GB")],
)
def test_sizes_are_in_the_units_of_download_pages(size: int, text: str) -> None:
    assert format_size(size) == text


def test_without_a_terminal_a_line_is_written_for_each_quarter(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("tiny", 100_000_000) as tell:
        for done in range(0, 100_000_001, 10_000_000):
            tell(done, 100_000_000)

    assert capsys.readouterr().err == "".join(
        f"ollm: downloading tiny {share} % of 100 MB\n" for share in (0, 25, 50, 75, 100)
    )


def test_the_size_the_server_says_counts_before_the_expected_one(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("tiny", 100_000_000) as tell:
        tell(100_000_000, 200_000_000)
        tell(50_000_000, 0)

    assert capsys.readouterr().err == "ollm: downloading tiny 50 % of 200 MB\n"


def test_a_size_that_nobody_knows_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("tiny", 0) as tell:
        tell(1, 0)
        tell(2_000_000, 0)

    assert capsys.readouterr().err == "ollm: downloading tiny\n"


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Tty()
    monkeypatch.setattr(sys, "stderr", screen)
    with show_progress("tiny", 50_000_000) as tell:
        tell(25_000_000, 0)

    assert "tiny" in screen.getvalue()
    assert "25.0/50.0 MB" in screen.getvalue()


def test_only_a_missing_model_file_is_offered_and_only_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert not offer_missing_model(NoServerError("gone"), {})
    assert not offer_missing_model(ModelFileMissingError("The model smollm2 is not here.", model="smollm2"), {})
    assert capsys.readouterr().err == ""
