"""How an answer begins where the next step is plain from the words."""

import subprocess
from pathlib import Path

import pytest

from ollm.services.request_reading.answer_beginnings import begin_first_step, begin_named_step, begin_question, make_sed
from ollm.services.request_reading.primed_request import prime_request


@pytest.mark.parametrize(
    ("request_", "begun"),
    [
        ("Rename data.txt to input.txt.", "```bash\nmv data.txt"),
        ("Please delete the file old.log.", "```bash\nrm old.log"),
        ("Make a copy of a.ini called b.ini.", "```bash\ncp a.ini"),
        ("Make a folder docs and move guide.md into it.", "```bash\nmkdir -p docs"),
        ("Run python calc.py and tell me what it prints.", "```bash\npython calc.py"),
        ("Run main.py.", "```bash\npython main.py"),
        ("How many files are in src?", "```bash\n"),
        ("python test_a.py fails. Fix a.py.", "```bash\npython test_a.py\n```\n"),
        ("Add up the numbers in n.txt and write the sum into sum.txt.", "```bash\n"),
        ("Rename the function load to fetch in a.py and b.py.", "```bash\nsed -i 's/\\bload\\b/fetch/g' a.py b.py"),
        ("Rename the function load to fetch in a.py and write a note into n.txt.",
         "```bash\nsed -i 's/\\bload\\b/fetch/g' a.py"),
        ("Write a script sum.py that prints the total and save its output into t.txt.", "sum.py\n```python\n"),
        ("Change the version in pyproject.toml to 0.4.0.", ""),
        ("What does main.py do?", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_the_first_step_begins_where_the_words_say_it(request_: str, begun: str) -> None:
    assert begin_first_step(request_) == begun


def test_two_values_to_set_begin_the_command_and_one_does_not() -> None:
    primed = "\n\nFiles here: conf.py\n\nconf.py:\n```\nA_PORT = 1\nB_PORT = 2\n```"

    assert begin_first_step("Set A_PORT to 9 and B_PORT to 8 in conf.py.", primed).startswith("```bash\nsed -i")
    assert begin_first_step("Set A_PORT to 9 in conf.py.", primed) == ""
    assert begin_first_step("Replace tabs with spaces in conf.py.", primed) == ""  # `tabs` is no word of it


@pytest.mark.parametrize(
    ("told", "begun"),
    [
        ("Now run python test.py.", "```bash\npython test.py"),
        ("Now run it.", "```bash\n"),
        ("o.txt does not exist. Now write the output of python a.py into o.txt.", "```bash\npython a.py > o.txt"),
        ("a.txt does not exist. Now write a.txt.", "a.txt\n```\n"),
        ("a.py does not exist. Now write a.py.", "a.py\n```python\n"),
        ("n.txt does not exist. Now write n.txt with a command.", "```bash\n"),
        ("a.py:\n```\nx = 1\n```\n\nNow change a.py too.", "a.py\n```\n"),
        ("Now change a.py with a command.", "```bash\nsed -i"),
        ("python t.py still fails. Now mend a.py.", "a.py\n```\n"),
        ("b.py still has f. Now replace f by g in b.py.", "```bash\nsed -i 's/\\bf\\b/g/g' b.py"),
        ("Now remove MAX from a.py.", "```bash\nsed -i '/^MAX\\b/d' a.py"),
        ("Now set B_PORT to 91 in a.py.", "a.py\n```\nB_PORT"),
        ("Nothing has been changed. Now do it.", "```bash\n"),
        ("Now say in a sentence what was done or found.", ""),
        ("Now change a.py.\nand then something else", ""),
        ("ok\n[exit code 0]", ""),
    ],
)
def test_a_step_that_is_named_begins_with_it(told: str, begun: str) -> None:
    assert begin_named_step(told) == begun


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        ("load", "fetch", "load(); reload(); x.load", "fetch(); reload(); x.fetch"),
        ("1.4.0", "1.5.0", "v = '1.4.0' 11.4.0 1x4x0", "v = '1.5.0' 11.4.0 1x4x0"),
        ("#ff6600", "#0066ff", "color: #ff6600;", "color: #0066ff;"),
        ("api/v1", "api/v2", "/api/v1/users", "/api/v2/users"),
        ("Old Ltd", r"A & B\n", "by Old Ltd.", r"by A & B\n."),
    ],
)
def test_the_expression_replaces_the_word_and_nothing_else(
    tmp_path: Path, old: str, new: str, before: str, after: str
) -> None:
    (tmp_path / "f").write_text(before + "\n")

    subprocess.run(["sed", "-i", make_sed(old, new), "f"], cwd=tmp_path, check=True)

    assert (tmp_path / "f").read_text() == after + "\n"


def test_a_file_that_is_to_be_sorted_is_sorted_in_its_place() -> None:
    assert begin_first_step("sort cities.txt") == "```bash\nsort -o cities.txt"
    assert begin_first_step("sort cities.txt and throw out the dupes").startswith("```bash\nsort -u -o cities.txt")
    assert begin_first_step("Sort the lines of names.txt alphabetically.") == "```bash\nsort -o names.txt"
    assert begin_first_step("Sort the imports in a.py.") == ""


@pytest.mark.parametrize(
    ("request_", "begun"),
    [
        ("I need a script countdown.py that prints 5 to 1.", "countdown.py\n```python\n"),
        ("players.json holds scores. Write table.py that reads it.", "table.py\n```python\n"),
        ("Write tests for util.py in test_util.py", "test_util.py\n```python\n"),
        ("Write me a bash script backup.sh that copies a.txt to b.txt.", "backup.sh\n```sh\n"),
        ("Create main.go that prints 1.", "main.go\n```\n"),
        ("Write a function add in util.py", ""),  # it is there
        ("Write the output of app.py into out.py", ""),
        ("Fix app.py and write a test test_app.py", ""),  # something else comes first
        ("Move load from util.py into io.py", ""),
        ("What if I create x.py?", ""),
        ("Write a summary of app.py", ""),
    ],
)
def test_a_new_program_begins_with_its_file(request_: str, begun: str) -> None:
    assert begin_first_step(request_, "\n\nFiles here: app.py, util.py, players.json") == begun


SHOWN = (
    "\n\nFiles here: a.py, b.py, c.yaml, legacy.py, test_a.py\n\na.py:\n```\nfrom b import X\n\nLIMIT = 5\nNAME = 'x'\n\n"
    "print(LIMIT, X)\n```\n\nb.py:\n```\nX = 1\n```\n\nc.yaml:\n```\nversion: 1.2\nimage: nginx:1.25\n```"
)


@pytest.mark.parametrize(
    ("request_", "begun"),
    [
        ("bump the version to 1.3", "```bash\nsed -i 's/^version: 1\\.2$/version: 1.3/' c.yaml"),
        ("bump the nginx image to 1.27", ""),  # only a part of the value is meant
        ("Change NAME to y and tell nobody to look", ""),
        ("legacy.py isn't used by anything any more, get rid of it", "```bash\nrm legacy.py"),
        ("legacy.py is obsolete. Please delete it.", "```bash\nrm legacy.py"),
        ("a.py imports os, which is not used; remove it", ""),  # the import is meant
        ("a.py is used by b.py and has a debug print, remove it", ""),
        ("make the tests pass", "```bash\npython test_a.py\n```\n"),
        ("Write a test for a.py that passes", ""),
        ("Do the tests pass?", ""),
        ("LIMIT should be called MAXIMUM", "```bash\nsed -i 's/\\bLIMIT\\b/MAXIMUM/g'"),
        ("The result should be called twice", ""),
    ],
)
def test_what_is_meant_by_it_and_by_names_without_a_file_is_read(request_: str, begun: str) -> None:
    assert begin_first_step(request_, SHOWN) == begun


@pytest.mark.parametrize(
    ("request_", "source", "target"),
    [
        ("Move LIMIT from a.py to b.py and import it from there.", "from b import X, LIMIT", "LIMIT = 5"),
        ("LIMIT is in the wrong place. Put it into b.py.", "from b import X, LIMIT", "LIMIT = 5"),
        ("NAME belongs in b.py", "", "NAME = 'x'"),
        ("Put NAME into b.py", "", "NAME = 'x'"),
        ("Put the value of NAME into b.py", None, None),
        ("NAME is in the wrong place. Fix b.py", None, None),
        ("Put UNKNOWN into b.py", None, None),
    ],
)
def test_a_constant_moves_and_is_imported_where_it_is_used(
    tmp_path: Path, request_: str, source: str | None, target: str | None
) -> None:
    files = {name: SHOWN.partition(f"\n{name}:\n```\n")[2].partition("```")[0] for name in ("a.py", "b.py")}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    begun = begin_first_step(request_, prime_request(request_, sorted(files), files.get, 4_000).text)
    if source is None or target is None:
        assert "import" not in begun
        assert ">>" not in begun
        return
    subprocess.run(begun.strip("`\n").removeprefix("bash"), shell=True, cwd=tmp_path, check=True)

    assert (tmp_path / "b.py").read_text() == f"X = 1\n{target}\n"
    left = (tmp_path / "a.py").read_text()
    assert source in left
    assert not any(line.startswith(target) for line in left.splitlines())


@pytest.mark.parametrize(
    ("request_", "begun"),
    [
        ("Which exception do I get for a book that nobody has?", "The exception"),
        ("which class sends the mails, and in which file is it?", "The class"),
        ("What method of Library lends a book?", "The method"),
        ("In which function is the rate used?", "The function"),
        ("Which exception do I get when I run a.py?", ""),
        ("What error does a.py print?", ""),
        ("Which function is the longest?", ""),
        ("Which functions are there?", ""),
        ("Which class of error is it?", "The class"),
        ("Which file is it?", ""),
        ("Which function fails?", ""),
        ("Which class should I delete? Delete it.", ""),
        ("Tell me which class it is", ""),
    ],
)
def test_a_question_for_a_name_is_begun_where_the_code_was_shown(request_: str, begun: str) -> None:
    assert begin_question(request_, "\n\nFiles here: a.py\n\na.py:\n```\nx = 1\n```") == begun
    assert begin_question(request_, "\n\nFiles here: a.py") == ""
    assert begin_question(request_, "a.py is long (300 lines). Parts of it:\n```\nx = 1\n```") == ""
