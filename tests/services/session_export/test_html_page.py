"""The head of an exported page."""

from ollm.services.session_export.html_page import PAGE_HEAD


def test_the_page_may_load_nothing_and_has_both_looks() -> None:
    assert "default-src 'none'" in PAGE_HEAD
    assert "prefers-color-scheme: dark" in PAGE_HEAD
    assert "<script" not in PAGE_HEAD
    assert "http" not in PAGE_HEAD.replace("http-equiv", "")
