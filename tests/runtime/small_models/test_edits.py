"""What a block under a file's name does to the file, as small models wrote them."""

from ollm.runtime.small_models.edits import Change, read_change

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


def test_a_new_file_gets_all_of_the_block() -> None:
    assert read_change("a.py", "x = 1", None) == Change(content="x = 1\n")


def test_a_file_that_was_shown_whole_is_replaced() -> None:
    current = "".join(f"line {n}\n" for n in range(30))
    body = current.replace("line 7\n", "line seven\n")
    assert read_change("a.txt", body, current) == Change(content=body)


def test_a_long_file_that_was_not_shown_is_not_replaced() -> None:
    change = read_change("a.txt", "one\ntwo\n", "".join(f"line {n}\n" for n in range(90)))
    assert "90 lines" in change.mistake


def test_a_search_block_and_a_diff_are_edits() -> None:
    search = "<<<<<<< SEARCH\nMAIL_PORT = 1\n=======\nMAIL_PORT = 25\n>>>>>>> REPLACE\n"
    assert read_change("s.py", search, SETTINGS).edits == (("MAIL_PORT = 1", "MAIL_PORT = 25"),)

    diff = "--- a/s.py\n+++ b/s.py\n@@ -3,2 +3,2 @@\n-MAIL_PORT = 1\n+MAIL_PORT = 25\n MAIL_RETRIES = 3\n"
    assert read_change("s.py", diff, SETTINGS).edits == (
        ("MAIL_PORT = 1\nMAIL_RETRIES = 3", "MAIL_PORT = 25\nMAIL_RETRIES = 3"),
    )


def test_only_a_new_function_under_the_name_of_a_small_file_does_not_wipe_the_rest() -> None:
    current = "import math\n\n\ndef circle(r):\n    return math.pi * r * r\n\n\ndef square(a):\n    return a * a\n"
    change = read_change("shapes.py", "def rectangle(a, b):\n    return a * b\n", current)

    ((target, replacement),) = change.edits
    assert target.startswith("def square")
    assert "def rectangle" in replacement


def test_what_changes_nothing_says_so() -> None:
    assert "already" in read_change("a.py", "x = 1\n", "x = 1\n").mistake


def test_a_short_piece_does_not_wipe_a_file_that_was_shown() -> None:
    page = "".join(f"line {n} of a page\n" for n in range(40))
    assert "40 lines" in read_change("notes.txt", "something else\nand more\n", page).mistake


def test_half_a_search_block_is_never_written_into_a_file() -> None:
    body = "======= SEARCH\n    def method_3(self):\n        return 3\n"
    assert "nothing was changed" in read_change("team.py", body, CLASS).mistake
    assert "<<<<<<<" not in str(read_change("new.py", "<<<<<<< SEARCH\nx\n", None).content)


def test_a_rewritten_part_with_a_new_helper_brings_both() -> None:
    current = LONG + "def main():\n    print(1)\n\n\nif __name__ == '__main__':\n    main()\n"
    body = (
        '"""Words."""\n\n\ndef helper():\n    return 2\n\n\ndef main():\n    print(helper())\n\n\n'
        'if __name__ == "__main__":\n    main()\n'
    )
    after = current
    for pair in read_change("tool.py", body, current).edits:
        after = after.replace(*pair)
    assert after.startswith('"""Words."""\n')
    assert "def helper():\n    return 2\n\n\ndef main():\n    print(helper())" in after
    assert after.count("__main__") == 1


def test_lines_marked_as_gone_and_new_are_a_diff_though_no_head_says_so() -> None:
    current = "from calc import add, sub\n\nprint(add(2, 3), sub(9, 4))\n- a list\n"
    body = "from calc import add, sub\n-print(add(2, 3), sub(9, 4))\n+print(add(2, 3), subtract(9, 4))\n"

    change = read_change("app.py", body, current)

    assert change.edits == (("print(add(2, 3), sub(9, 4))", "print(add(2, 3), subtract(9, 4))"),)
    assert read_change("todo.md", "- a list\n+ more\n", current).edits != (("a list", "more"),)


def test_lines_to_be_added_do_not_wipe_a_short_file() -> None:
    current = "import os\n\nDEBUG = False\n\n\ndef f():\n    pass\n"
    ((target, replacement),) = read_change("config.py", "MAX = 50\n", current).edits

    assert (target, replacement) == ("DEBUG = False", "DEBUG = False\nMAX = 50")
    assert read_change("notes.txt", "all new\n", "one\ntwo\nthree\n").content == "all new\n"


def test_an_empty_block_empties_no_file() -> None:
    change = read_change("a.py", "\n", "x = 1\n")

    assert change.mistake == "The block for a.py is empty: nothing was changed."


def test_an_indented_line_is_a_part_of_a_small_file_and_never_all_of_it() -> None:
    current = "RATE = 20\n\n\ndef with_tax(price):\n    return price - price * RATE / 100\n"

    placed = read_change("tax.py", "    return price + price * RATE / 100\n", current)
    assert placed.content is None
    assert placed.edits[0][1].endswith("return price + price * RATE / 100")
    other = read_change("tax.py", "    raise KeyError\n", current)
    assert other.content is None
    assert other.mistake


def test_what_was_said_of_a_file_is_no_part_of_it() -> None:
    body = "a.py is long (112 lines). Parts of it:\nx = 1\n"

    assert read_change("a.py", body, "x = 2\n").mistake
