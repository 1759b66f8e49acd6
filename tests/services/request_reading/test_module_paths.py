"""How modules of a project name each other, and which of them use what moves."""

import pytest

from ollm.services.request_reading.asked_places import MovedNames
from ollm.services.request_reading.module_paths import MAX_READ_MODULES, find_users, name_module, reaches

RUNS = "if __name__ == '__main__':\n    print(1)\n"


@pytest.mark.parametrize(
    ("source", "target", "files", "link"),
    [
        ("a.py", "b.py", {"a.py": ""}, "b"),
        ("a.py", "lib/sub/b.py", {"a.py": ""}, "lib.sub.b"),
        ("a.py", "my-lib/b.py", {"a.py": ""}, ""),
        ("a.py", "b.py", {"a.py": "", "__init__.py": ""}, ""),
        ("p/a.py", "b.py", {"p/a.py": ""}, ""),
        ("p/a.py", "p/b.py", {"p/a.py": "", "p/__init__.py": ""}, ".b"),
        ("p/a.py", "p/b.py", {"p/a.py": RUNS, "p/__init__.py": ""}, ""),
        ("p/a.py", "p/b.py", {"p/a.py": "from .c import x\n"}, ".b"),
        ("p/a.py", "p/b.py", {"p/a.py": "from c import x\n", "p/c.py": ""}, "b"),
        ("p/a.py", "p/b.py", {"p/a.py": "from c import x\n"}, ""),
        ("s/p/a.py", "s/p/b.py", {"s/p/a.py": "from p.c import x\n"}, "p.b"),
        ("p/__main__.py", "p/b.py", {"p/__main__.py": "from .c import x\n"}, ""),
    ],
)
def test_a_module_is_named_as_its_folder_and_imports_say(
    source: str, target: str, files: dict[str, str], link: str
) -> None:
    assert name_module(source, target, sorted(files), files.get) == link


def test_a_module_reaches_another_by_others() -> None:
    files = {"a.py": "from b import x\n", "b.py": "if 1:\n    import p.c as d\n", "p/c.py": "", "e.py": "x = 'a'\n"}

    assert reaches("a.py", "p/c.py", sorted(files), files.get)
    assert not reaches("p/c.py", "a.py", sorted(files), files.get)
    assert not reaches("e.py", "a.py", sorted(files), files.get)


def test_users_are_rewritten_where_their_import_is_plain_and_they_may_change() -> None:
    moved = MovedNames(names=("f",), source="a.py", target="b.py")
    files = {"a.py": "", "m.py": "from a import f, g\n", "n.py": "import a\n\na.f()\n", "o.py": "def f():\n    pass\n"}

    users = find_users(moved, sorted(files), files.get, lambda _: True)
    assert users.changes == ("sed -i -e '1s/.*/from a import g\\nfrom b import f/' m.py",)
    assert users.left == {"f"}, "of n.py"
    kept = find_users(moved, ["a.py", "m.py"], files.get, lambda _: False)
    assert (kept.changes, kept.left) == ((), {"f"})
    settings = {"a.py": "", "pyproject.toml": '[project.scripts]\nx = "a:f"\n', "b.ini": "x = a:fun\n"}
    assert find_users(moved, sorted(settings), settings.get, lambda _: True).left == {"f"}
    assert find_users(moved, ["a.py", "b.ini"], settings.get, lambda _: True).left == set()
    assert find_users(moved, ["a.py", "o.py"], files.get, lambda _: True).left == set()
    assert find_users(moved, ["a.py", "secret.py"], files.get, lambda _: True).left == {"f"}, "it cannot be read"
    many = [f"x{number}.py" for number in range(MAX_READ_MODULES + 1)]
    assert find_users(moved, many, dict.fromkeys(many, "").get, lambda _: True).left == {"f"}


def test_two_modules_of_one_name_are_told_apart_by_nobody() -> None:
    moved = MovedNames(names=("f",), source="p/a.py", target="p/b.py")
    files = {"p/a.py": "", "q/a.py": "", "m.py": "from p.a import f\n"}

    users = find_users(moved, sorted(files), files.get, lambda _: True)

    assert (users.changes, users.left) == ((), {"f"})
