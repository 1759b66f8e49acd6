"""The head of an exported page."""

from ollm.services.session_export.html_page import render_page_head


def test_the_page_may_load_nothing_and_has_both_looks() -> None:
    head = render_page_head("A &amp; B")

    assert "<title>A &amp; B</title>" in head
    assert "default-src 'none'" in head
    assert "prefers-color-scheme: dark" in head
    assert "<script" not in head
    assert "http" not in head.replace("http-equiv", "")
