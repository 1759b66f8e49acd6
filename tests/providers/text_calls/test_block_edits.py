"""What a block under a file's name does to the file, as small models wrote them."""

import pytest

from ollm.providers.text_calls.block_edits import Change, read_change

LONG = "".join(
    f'def total_{noun}s(items):\n    """What all of them cost."""\n    total = 0\n    for item in items:\n'
    f'        total += item["price"]\n    return total\n\n\ndef find_{noun}(items, name):\n    for item in items:\n'
    f'        if item["name"] == name:\n            return item\n    return None\n\n\n'
    for noun in ("book", "lamp", "chair", "table")
)
CLASS = (
    'class Team:\n    """One team."""\n\n    def __init__(self, title):\n        self.title = title\n        self.members = []\n'
    + "".join(f"\n    def method_{n}(self):\n        return {n}\n" for n in range(12))
)
SETTINGS = "".join(
    f"{group}_PORT = {n}\n{group}_RETRIES = 3\n\n" for n, group in enumerate(("WEB", "MAIL", "CACHE", "AUTH"))
)
YAML = "".join(
    f"  {name}:\n    image: {name}:1\n    replicas: 2\n    restart: always\n"
    for name in ("web", "api", "cache", "cron")
)


def test_a_new_file_gets_all_of_the_block() -> None:
    assert read_change("a.py", "x = 1", None, shown_whole=False) == Change(content="x = 1\n")


def test_a_file_that_was_shown_whole_is_replaced() -> None:
    current = "".join(f"line {n}\n" for n in range(30))
    body = current.replace("line 7\n", "line seven\n")
    assert read_change("a.txt", body, current, shown_whole=True) == Change(content=body)


def test_a_long_file_that_was_not_shown_is_not_replaced() -> None:
    change = read_change("a.txt", "one\ntwo\n", "".join(f"line {n}\n" for n in range(90)), shown_whole=False)
    assert "90 lines" in change.mistake


def test_a_function_takes_the_place_of_the_one_with_its_name() -> None:
    new = "def total_chairs(items):\n    return 0\n"
    change = read_change("store.py", new, LONG, shown_whole=False)

    ((target, replacement),) = change.edits
    assert LONG.count(target) == 1
    assert target.startswith("def total_chairs(items):")
    assert target.endswith("return total")
    assert replacement == new.rstrip()


def test_a_new_function_is_added_behind_the_last() -> None:
    change = read_change("store.py", "import math\n\n\ndef area(r):\n    return math.pi * r\n", LONG, shown_whole=False)

    ((target, replacement),) = change.edits
    assert target.startswith("def find_table")
    assert replacement == f"{target}\n\n\ndef area(r):\n    return math.pi * r"


@pytest.mark.parametrize(
    "body",
    [
        "    def count(self):\n        return 5\n",
        "class Team:\n    def count(self):\n        return 5\n",
        "class Team:\n    # ... existing code ...\n\n    def count(self):\n        return 5\n",
    ],
)
def test_a_method_is_added_to_its_class_and_the_others_stay(body: str) -> None:
    change = read_change("team.py", body, CLASS, shown_whole=False)

    ((target, replacement),) = change.edits
    assert CLASS.count(target) == 1
    after = CLASS.replace(target, replacement)
    scope: dict[str, type] = {}
    exec(after, scope)
    assert scope["Team"]("x").count() == 5
    assert scope["Team"]("x").method_11() == 11


def test_lines_that_set_a_name_take_the_place_of_those_that_set_it() -> None:
    change = read_change("settings.py", "MAIL_PORT = 2525\nAUTH_RETRIES = 9\n", SETTINGS, shown_whole=False)
    assert change.edits == (("MAIL_PORT = 1", "MAIL_PORT = 2525"), ("AUTH_RETRIES = 3", "AUTH_RETRIES = 9"))


def test_a_shown_part_with_a_change_takes_the_place_of_that_part() -> None:
    body = "  cache:\n    image: cache:1\n    replicas: 5\n    restart: always\n"
    change = read_change("compose.yaml", body, YAML * 1 + "".join(f"# {n}\n" for n in range(40)), shown_whole=False)

    ((target, replacement),) = change.edits
    assert "cache:1\n    replicas: 2" in target
    assert "cache:1\n    replicas: 5" in replacement


def test_stretches_between_comments_that_stand_for_the_rest_are_placed() -> None:
    old = "".join(f"step_{n}()\n" for n in range(40))
    body = "step_3()\nextra()\nstep_4()\n# ... rest of the code ...\nstep_20()\nmore()\nstep_21()\n"
    change = read_change("a.py", body, old, shown_whole=True)

    assert change.edits == (
        ("step_3()\nstep_4()", "step_3()\nextra()\nstep_4()"),
        ("step_20()\nstep_21()", "step_20()\nmore()\nstep_21()"),
    )


def test_a_search_block_and_a_diff_are_edits() -> None:
    search = "<<<<<<< SEARCH\nMAIL_PORT = 1\n=======\nMAIL_PORT = 25\n>>>>>>> REPLACE\n"
    assert read_change("s.py", search, SETTINGS, shown_whole=False).edits == (("MAIL_PORT = 1", "MAIL_PORT = 25"),)

    diff = "--- a/s.py\n+++ b/s.py\n@@ -3,2 +3,2 @@\n-MAIL_PORT = 1\n+MAIL_PORT = 25\n MAIL_RETRIES = 3\n"
    assert read_change("s.py", diff, SETTINGS, shown_whole=False).edits == (
        ("MAIL_PORT = 1\nMAIL_RETRIES = 3", "MAIL_PORT = 25\nMAIL_RETRIES = 3"),
    )


def test_only_a_new_function_under_the_name_of_a_small_file_does_not_wipe_the_rest() -> None:
    current = "import math\n\n\ndef circle(r):\n    return math.pi * r * r\n\n\ndef square(a):\n    return a * a\n"
    change = read_change("shapes.py", "def rectangle(a, b):\n    return a * b\n", current, shown_whole=True)

    ((target, replacement),) = change.edits
    assert target.startswith("def square")
    assert "def rectangle" in replacement


def test_a_function_that_differs_in_its_name_alone_is_the_old_one_renamed() -> None:
    old = LONG[LONG.index("def total_lamps") : LONG.index("def find_lamp")].rstrip()
    change = read_change("store.py", old.replace("total_lamps", "sum_lamps"), LONG, shown_whole=False)

    ((target, replacement),) = change.edits
    after = LONG.replace(target, replacement)
    assert after == LONG.replace("total_lamps", "sum_lamps")


def test_what_changes_nothing_says_so() -> None:
    assert "already" in read_change("a.py", "x = 1\n", "x = 1\n", shown_whole=True).mistake


STYLE = "".join(
    f".box{n} {{\n  color: {'#ff6600' if n % 3 == 0 else '#222222'};\n  margin: {n}px;\n}}\n" for n in range(20)
)


def test_a_line_that_many_have_is_placed_by_the_value_the_request_names() -> None:
    request = "Replace #ff6600 by #0066ff everywhere in style.css"
    change = read_change("style.css", "color: #0066ff;\n", STYLE, shown_whole=False, request=request)

    assert change.edits == (("color: #ff6600;", "color: #0066ff;"),)
    assert read_change("style.css", "color: #0066ff;\n", STYLE, shown_whole=False, request="Change it").mistake


def test_a_definition_that_is_to_go_and_is_shown_again_is_removed() -> None:
    old = LONG[LONG.index("def find_lamp") : LONG.index("def total_chairs")]
    change = read_change("store.py", old, LONG, shown_whole=False, removed={"find_lamp"})

    ((target, replacement),) = change.edits
    after = LONG.replace(target, replacement)
    assert "find_lamp" not in after
    assert after.count("\ndef ") == LONG.count("\ndef ") - 1
    compile(after, "store.py", "exec")


def test_a_section_of_a_page_is_added_or_takes_the_place_of_its_namesake() -> None:
    page = "# Parcel\n\n" + "".join(f"## Part {n}\n\nText {n}.\n\n" for n in range(9))

    ((target, replacement),) = read_change("README.md", "## Licence\n\nMIT\n", page, shown_whole=True).edits
    assert page.replace(target, replacement).rstrip().endswith("Text 8.\n\n## Licence\n\nMIT")

    ((target, replacement),) = read_change("README.md", "## Part 4\n\nNew.\n", page, shown_whole=True).edits
    after = page.replace(target, replacement)
    assert "## Part 4\n\nNew.\n\n## Part 5" in after
    assert "Text 4." not in after


def test_a_short_piece_does_not_wipe_a_file_that_was_shown() -> None:
    page = "".join(f"line {n} of a page\n" for n in range(40))
    assert "40 lines" in read_change("notes.txt", "something else\nand more\n", page, shown_whole=True).mistake


def test_half_a_search_block_is_never_written_into_a_file() -> None:
    body = "======= SEARCH\n    def method_3(self):\n        return 3\n"
    assert "nothing was changed" in read_change("team.py", body, CLASS, shown_whole=True).mistake
    assert "<<<<<<<" not in str(read_change("new.py", "<<<<<<< SEARCH\nx\n", None, shown_whole=False).content)


def test_a_head_without_a_body_is_no_definition() -> None:
    current = 'def greet(name):\n    return "Hello, " + name\n' + "".join(f"x{n} = {n}\n" for n in range(20))
    change = read_change("greeting.py", "def welcome(name):\n", current, shown_whole=False)
    assert change.edits == (("def greet(name):", "def welcome(name):"),)


def test_a_rewritten_part_with_a_new_helper_brings_both() -> None:
    current = LONG + "def main():\n    print(1)\n\n\nif __name__ == '__main__':\n    main()\n"
    body = (
        '"""Words."""\n\n\ndef helper():\n    return 2\n\n\ndef main():\n    print(helper())\n\n\n'
        'if __name__ == "__main__":\n    main()\n'
    )
    ((target, replacement),) = read_change("tool.py", body, current, shown_whole=False).edits
    after = current.replace(target, replacement)
    assert "def helper():\n    return 2\n\n\ndef main():\n    print(helper())" in after
    assert after.count("__main__") == 1
