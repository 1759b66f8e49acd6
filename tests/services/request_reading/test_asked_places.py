"""Where a request wants something to be."""

import pytest

from ollm.services.request_reading.asked_places import (
    describe_lacking,
    describe_moved_file,
    find_asked_methods,
    find_asked_places,
    find_deleted_folders,
    find_misplaced_parts,
    find_moved_names,
)

MOVE = "Move c_to_f and f_to_c out of weather.py into a new file units.py."
WEATHER = (
    "def c_to_f(c):\n    return c * 2\n\n\ndef report():\n    return c_to_f(1)\n\n\ndef f_to_c(f):\n    return f / 2\n"
)


@pytest.mark.parametrize(
    ("request_", "places"),
    [
        ("write a function count_vowels(text) in words.py", {"count_vowels": "words.py"}),
        ("Add the method total to shop/cart.py", {"total": "shop/cart.py"}),
        ("Add a total(items) function to cart.py.", {"total": "cart.py"}),
        ("Write is_even(n) in numbers.py and test it.", {"is_even": "numbers.py"}),
        ("Call is_even(n) in numbers.py.", {}),
        ("Add is_even(n) to main.py.", {}),  # it may be a call
        ("Write print(n) in main.py.", {}),
        ("Write shout('n') in main.py.", {}),
        ("What does the function total in cart.py do?", {}),
        ("write words.py", {}),
    ],
)
def test_a_function_has_a_file(request_: str, places: dict[str, str]) -> None:
    assert find_asked_places(request_) == places


@pytest.mark.parametrize(
    ("request_", "folders"),
    [
        ("delete the folder legacy and the import of it in main.py", ["legacy"]),
        ("please remove the old/stuff directory", ["old/stuff"]),
        ("delete notes.txt", []),
        ("create the folder new", []),
    ],
)
def test_a_folder_goes(request_: str, folders: list[str]) -> None:
    assert find_deleted_folders(request_) == folders


def test_definitions_move_from_file_to_file() -> None:
    moved = find_moved_names(MOVE)
    assert moved is not None
    assert (moved.names, moved.source, moved.target) == (("c_to_f", "f_to_c"), "weather.py", "units.py")
    single = find_moved_names("extract the function parse from app.py to parsing.py")
    assert single is not None
    assert (single.names, single.source, single.target) == (("parse",), "app.py", "parsing.py")
    assert find_moved_names("move weather.py into the folder old") is None


def test_a_block_that_lacks_what_moves_is_told_what_it_is() -> None:
    files = {"weather.py": WEATHER}
    told = describe_lacking(MOVE, "units.py", "from weather import c_to_f, f_to_c\n", files.get)
    assert told.startswith(
        "units.py is to define c_to_f and f_to_c: nothing was changed. In weather.py there is:\n```\n"
    )
    assert "def c_to_f(c):\n    return c * 2\n\n\ndef f_to_c(f):\n    return f / 2\n```" in told
    assert told.endswith("Write that into units.py.")
    assert "report" not in told
    assert describe_lacking(MOVE, "weather.py", "", files.get) == ""
    assert describe_lacking(MOVE, "units.py", WEATHER, files.get) == ""
    assert describe_lacking("Write units.py", "units.py", "", files.get) == ""


def test_what_is_not_where_it_is_to_be_is_a_step_that_is_left() -> None:
    texts = {"units.py": "LIMIT = 3\n", "weather.py": WEATHER}
    assert find_misplaced_parts(MOVE, texts, texts) == [
        "units.py does not define c_to_f and f_to_c. Now change units.py.",
        "c_to_f is still in weather.py: remove it there.",
        "f_to_c is still in weather.py: remove it there.",
    ]
    assert find_misplaced_parts(MOVE, {"units.py": WEATHER, "weather.py": ""}, texts) == []
    assert find_misplaced_parts("Move LIMIT from weather.py to units.py", texts, texts) == []
    assert find_misplaced_parts("delete the folder legacy", {}, ["legacy/a.py", "b.py"]) == [
        "The folder legacy is still there. Now run rm -r legacy."
    ]
    assert find_misplaced_parts("delete the folder legacy", {}, ["legacy.py", "b.py"]) == []
    assert find_misplaced_parts("Write a function area in units.py", texts, texts) == [
        "units.py does not define area. Now change units.py."
    ]
    data = {"regions.json": '{"ap-south": 1}', "other.json": '{"ap-south": 1}'}
    left = "ap-south is still in regions.json. Now remove ap-south from regions.json."
    assert find_misplaced_parts("remove the region ap-south from regions.json", data, data) == [left]
    assert find_misplaced_parts("remove the region ap-north from regions.json", data, data) == []


@pytest.mark.parametrize(
    ("asked", "name", "owner", "path"),
    [
        ("add a method longest() to the class Library in library.py", "longest", "Library", "library.py"),
        ("Add a `longest` method to `Library` (library.py).", "longest", "Library", "library.py"),
        ("Write a method named longest for the Library class", "longest", "Library", ""),
        ("Give Library in library.py a method longest(self)", "longest", "Library", "library.py"),
        ("Library needs a new method longest", "longest", "Library", ""),
        ("To the class Library in library.py, add a method longest.", "longest", "Library", "library.py"),
        ("In library.py implement a longest() method on Library", "longest", "Library", ""),
    ],
)
def test_methods_are_read_with_their_class(asked: str, name: str, owner: str, path: str) -> None:
    (found,) = find_asked_methods(asked)

    assert (found.name, found.owner, found.path) == (name, owner, path)


@pytest.mark.parametrize(
    ("asked", "command", "told"),
    [
        ("move c_to_f from weather.py to main.py", "mv weather.py main.py", True),
        ("Move c_to_f out of weather.py into units.py.", "cp -f weather.py units.py && ls", True),
        ("move c_to_f from weather.py to main.py", "mv weather.py main.py.bak", False),
        ("move c_to_f from weather.py to main.py", "mv old.py main.py", False),
        ("move everything from weather.py to main.py", "mv weather.py main.py", False),
        ("move weather.py to main.py", "mv weather.py main.py", False),
    ],
)
def test_a_file_is_not_moved_for_a_part_of_it(asked: str, command: str, told: bool) -> None:
    said = describe_moved_file(asked, command, {"weather.py": WEATHER}.get)

    assert said.startswith("Only c_to_f is to go from weather.py to ") is told
    assert bool(said) is told


def test_several_methods_are_of_the_class_that_each_is_said_of() -> None:
    both = find_asked_methods("Give the class Club in club.py a method close() that ends it, and a method is_open().")
    assert [(found.name, found.owner, found.path) for found in both] == [
        ("close", "Club", "club.py"),
        ("is_open", "Club", "club.py"),
    ]
    two = find_asked_methods("Add a method run to Dog and a method fly to Bird.")
    assert [(found.name, found.owner) for found in two] == [("run", "Dog"), ("fly", "Bird")]
    assert find_asked_methods("Add a function area(r) to shapes.py.") == []


def test_a_class_without_its_method_is_a_step() -> None:
    asked = "add a method longest() to the class Library in library.py"
    text = "class Library:\n    def add(self):\n        return 1\n\n\ndef longest(self):\n    return 2\n"
    step = "Library has no method longest. Now change library.py."

    assert find_misplaced_parts(asked, {"library.py": text}, ()) == [step]
    assert find_misplaced_parts(asked, {"library.py": text.replace("add", "longest")}, ()) == []
    assert step not in find_misplaced_parts(asked, {"library.py": "def add():\n    return 1\n"}, ())
    assert find_misplaced_parts(asked, {"library.py": f"{text}\n\n{text}"}, ()) == []
    assert find_misplaced_parts(asked, {}, ()) == []
