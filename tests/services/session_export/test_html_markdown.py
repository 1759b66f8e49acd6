"""Markdown of a model as HTML that does no harm."""

import re

from ollm.services.session_export.html import render_markdown_as_html as render

HOSTILE = """<script>alert(1)</script> [x](javascript:alert(1)) [y](data:text/html,hi) ![p](http://evil.example/p.png)

<img src=x onerror=alert(1)>
"""


def test_headings_lists_tables_and_code_become_their_tags() -> None:
    page = render("# One\n\n- a **b**\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n```python\na < b\n```\n")

    assert "<h3>One</h3>" in page, "below the heading of its message"
    assert "<strong>b</strong>" in page
    assert "<td>1</td>" in page
    assert '<span class="n">a</span> <span class="o">&lt;</span> <span class="n">b</span>' in page


def test_nothing_of_it_runs_or_is_loaded() -> None:
    page = render(HOSTILE)

    assert "<script" not in page
    assert "<img" not in page
    assert 'href="javascript' not in page
    assert 'href="data' not in page
    assert "[p]" in page


def test_a_link_leads_out_without_saying_where_one_came_from() -> None:
    assert '<a href="https://example.org" rel="noreferrer noopener">e</a>' in render("[e](https://example.org)")


def test_deep_nesting_is_no_error() -> None:
    assert "deep" in render(">" * 5000 + " deep")
    assert render("[" * 20_000)


def test_headings_go_down_one_step_at_a_time() -> None:
    page = render("# a\n\n### b\n\n###### c\n\n# d\n\n## e\n")

    assert re.findall(r"<(h\d)>", page) == ["h3", "h4", "h5", "h3", "h4"]
    assert re.findall(r"</(h\d)>", page) == ["h3", "h4", "h5", "h3", "h4"]


def test_what_cannot_be_parsed_is_shown_as_it_is() -> None:
    assert render("> " * 40 + "<b>") == f"<pre>{'&gt; ' * 40}&lt;b&gt;</pre>"
    assert render("- " * 50 + "deep") == f"<pre>{'- ' * 50}deep</pre>"
    assert render("- " * 49 + "deep").startswith("<ul>\n<li>\n<ul>")
    assert "deep" in render("- " * 49 + "deep")
    assert render("") == ""
    assert render("> " * 39 + "deep").startswith("<blockquote>")


def test_links_and_pictures_that_lead_elsewhere_are_words() -> None:
    page = render("[a](#x) [b](mailto:a@b.c) [c](./d.txt) [d](http://h) ![](p.png) ![<p>](p.png) <b>e</b> ~~f~~")

    assert page == (
        '<p><a href="#x" rel="noreferrer noopener">a</a> <a href="mailto:a@b.c" rel="noreferrer noopener">b</a> '
        '<a rel="noreferrer noopener">c</a> <a href="http://h" rel="noreferrer noopener">d</a> [image] [&lt;p&gt;] '
        "&lt;b&gt;e&lt;/b&gt; <s>f</s></p>\n"
    )


def test_no_heading_is_deeper_than_the_sixth_and_lists_keep_their_numbers() -> None:
    page = render("# a\n## b\n### c\n#### d\n##### e\n\n4. x\n")

    assert re.findall(r"<(h\d)>", page) == ["h3", "h4", "h5", "h6", "h6"]
    assert '<ol start="4">' in page
