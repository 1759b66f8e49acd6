"""Commands of small models without their slips."""

import json
import subprocess
from pathlib import Path

import pytest

from ollm.runtime.calls.command_mends import (
    count_alone,
    mend_command,
    mend_slashes,
    name_script,
    names_as_target,
    print_answer,
    read_written_file,
    run_scripts,
    show_file,
    write_as_json,
)


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("awk '{s += $3} END {print s}' t.csv > sum; cat sum", "7"),
        ("awk -F, '$2 == \"blue\"' t.csv | awk '{s += $3} END {print s}'", "5"),
        ("grep red t.csv | awk '{s+=$3} END {print s}'", "2"),
        ("awk -F, '{print $2, $3}' t.csv | awk '{s += $2} END {print s}'", "7"),
        ("cut -d, -f3 t.csv | awk '{s += $1} END {print s}'", "7"),
        ("awk 'BEGIN{FS=\",\"} {s += $3} END {print s}' t.csv", "7"),
        ("wc -l t.csv one.txt | sort -nr | head -n 1", "3 t.csv"),
        ("wc -l *.txt *.csv | sort -n | tail -1", "3 t.csv"),
        ("sed -i 's/one/two' one.txt; cat one.txt", "two words"),
        ("awk '{print $2}' one.txt", "words"),
        ("wc -l one.txt | sort | head", "1 one.txt"),
        ("cat t.csv || true; awk '{print $2}' one.txt", "id,name,amount\n1,red,2\n2,blue,5\nwords"),
        ("echo x; cat t.csv | awk '{print $3}'", "x\namount\n2\n5"),
        ("""python3 -c "import sys; for n in (1, 2): print(\\"n\\", n)\"""", "n 1\nn 2"),
        ("python3 -c 'import sys; if sys.argv: print(\"a\")'", "a"),
    ],
)
def test_a_command_says_what_was_meant(tmp_path: Path, command: str, printed: str) -> None:
    (tmp_path / "t.csv").write_text("id,name,amount\n1,red,2\n2,blue,5\n")
    (tmp_path / "one.txt").write_text("one words\n")
    done = subprocess.run(
        ["sh", "-c", mend_command(command)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == printed


@pytest.mark.parametrize(
    ("command", "mended"),
    [
        (r'echo "a\nb" > a.txt', r"""printf '%b\n' "a\nb" > a.txt"""),
        (r"echo 'def f():\n    return 1' >> a.py", r"printf '%b\n' 'def f():\n    return 1' >> a.py"),
        (r"""echo 'print("a\nb")' > a.py""", r"""echo 'print("a\nb")' > a.py"""),
        (r'echo "a\nb"', r'echo "a\nb"'),
        (r'echo "a b" > a.txt', r'echo "a b" > a.txt'),
        (r'echo "a\nb" > a.TXT', r"""printf '%b\n' "a\nb" > a.TXT"""),
        (r'echo "a\nb" > a.c', r'echo "a\nb" > a.c'),
        (r'echo "{\"a\":\n1}" > a.json', r"""printf '%b\n' "{\"a\":\n1}" > a.json"""),
        (r"echo 'x = 1\n)' > a.py", r"echo 'x = 1\n)' > a.py"),
        ("sed -i 's/a/b/' f", "sed -i 's/a/b/' f"),
        ("awk '{print $2}' a.csv", "awk -F, '{print $2}' a.csv"),
        ("awk '{print $1}' a.csv", "awk '{print $1}' a.csv"),
        ("awk -F';' '{print $2}' a.csv", "awk -F';' '{print $2}' a.csv"),
        ("cat a.csv | tail -n +2 | gawk '{print $NF}'", "cat a.csv | tail -n +2 | gawk -F, '{print $NF}'"),
        ("awk '/a/' a.csv | awk '{print $2}'", "awk '/a/' a.csv | awk -F, '{print $2}'"),
        ("cut -f2 a.csv | awk '{print $2}'", "cut -f2 a.csv | awk '{print $2}'"),
        ("echo a.csv; awk '{print $2}' b", "echo a.csv; awk '{print $2}' b"),
        ("grep '|;' a.csv | awk '{print $2}'", "grep '|;' a.csv | awk -F, '{print $2}'"),
        ("awk '{print $2}' b", "awk '{print $2}' b"),
    ],
)
def test_lines_that_are_echoed_into_a_file_are_lines(command: str, mended: str) -> None:
    assert mend_command(command) == mended


@pytest.mark.parametrize(
    ("command", "mended"),
    [
        ('echo "__pycache__ .venv" > .gitignore', "printf '%s\\n' __pycache__ .venv > .gitignore"),
        ("echo 'httpx rich>=13' >> requirements.txt", "printf '%s\\n' httpx 'rich>=13' >> requirements.txt"),
        ('echo "# what is ignored" > .gitignore', None),
        ('echo "*.pyc" > .gitignore', None),
        ('echo "two words" > notes.txt', None),
        ("sort -k2 -nr scores.csv | head -n 1", "sort -t, -k2 -nr scores.csv | head -n 1"),
        ("awk -F, 'NR > 1' s.csv | sort -k2 -nr", "awk -F, 'NR > 1' s.csv | sort -t, -k2 -nr"),
        ("sort -t, -k2 scores.csv", None),
        ("sort scores.csv", None),
        ("sort -k2 scores.txt", None),
    ],
)
def test_entries_and_columns_are_separated(command: str, mended: str | None) -> None:
    assert mend_command(command) == (mended or command)


def test_statements_of_python_stand_on_lines_where_they_run_only_so() -> None:
    code = "import json; with open('a') as f: names = f.readlines(); print(names)"
    assert mend_command(f'python -c "{code}" > b') == f'python -c "{code.replace("; with", chr(10) + "with")}" > b'
    for same in ("import os; print(1)", "if x: pass; else: pass", "[x for x in (1, 2)]; print(2)"):
        assert mend_command(f"python -c '{same}'") == f"python -c '{same}'"


def test_what_is_read_of_a_file_is_read_while_it_is_open_and_printed_once(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("name,age\nAnn,3\nBo,4\n")
    code = (
        "import csv, json; data = []; with open('p.csv') as file: reader = csv.DictReader(file); "
        "for row in reader: data.append(row); print(json.dumps(data))"
    )
    done = subprocess.run(
        ["sh", "-c", mend_command(f'python3 -c "{code}"')], cwd=tmp_path, capture_output=True, check=True
    )

    assert json.loads(done.stdout) == [{"name": "Ann", "age": "3"}, {"name": "Bo", "age": "4"}]


def test_slashes_in_the_words_of_sed_are_words_where_the_file_says_so(tmp_path: Path) -> None:
    text = "x = (RATE / 100.0)\nurl = http://a.b/c\n"
    (tmp_path / "a.py").write_text(text)
    commands = ("sed -i 's/(RATE / 100.0)/(RATE * 100.0)/' a.py", "sed -i 's/http://a.b/c/https://d/' a.py")
    mended = [mend_slashes(command, {"a.py": text}.get) for command in commands]
    for command in mended:
        subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)

    assert (tmp_path / "a.py").read_text() == "x = (RATE * 100.0)\nurl = https://d\n"
    for same in ("sed -i 's/x/y/' a.py", "sed -i 's/no / such/word/' a.py", "sed -i 's/a/b/c/' none.py", "ls"):
        assert mend_slashes(same, {"a.py": text}.get) == same
    assert mend_slashes("sed -i 's/x/y/z/g' a.py", {"a.py": text}.get) == "sed -i 's|x|y/z|g' a.py"
    assert mend_slashes("sed -i 's/(RATE / 100/a|b/' a.py", {"a.py": text}.get) == "sed -i 's/(RATE / 100/a|b/' a.py"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("a.txt", "cat a.txt"),
        (" docs/a.md\n", "cat docs/a.md"),
        ("a.sh", None),
        ("a.py", None),
        ("a.bat", None),
        ("none.txt", None),
        ("app/bin/run.js", None),
        ("a.txt b.txt", None),
        ("ls", None),
    ],
)
def test_the_name_of_a_file_that_is_no_program_shows_it(command: str, shown: str | None) -> None:
    assert show_file(command, lambda name: "none" not in name) == (shown or command)


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("cat > a.py <<EOF\nx = 1\nEOF", ("a.py", "x = 1\n")),
        ("  cat >d/a.txt <<-'END'\na\n\nb\nEND\n", ("d/a.txt", "a\n\nb\n")),
        ("cat > a.py <<EOF\nEOF", ("a.py", "")),
        ("cat > a.py <<EOF\nx = $y\nEOF", ("", "")),
        ("cat > a.py <<'EOF'\nx = $y\nEOF", ("a.py", "x = $y\n")),
        ("cat > a.py <<EOF\nx\nEOF\nls", ("", "")),
        ("cat a.py", ("", "")),
    ],
)
def test_a_command_that_only_writes_a_file_is_read(command: str, written: tuple[str, str]) -> None:
    assert read_written_file(command) == written


@pytest.mark.parametrize(
    ("command", "request_", "mended"),
    [
        ("python app.py --station Rome", "add --station to weather.py", "python weather.py --station Rome"),
        ("python3 app.py; ls", "fix weather.py, then run it", "python3 weather.py; ls"),
        ("python weather.py", "add --station to weather.py", None),
        ("python app.py", "write app.py, which calls weather.py", None),
        ("python app.py", "fix weather.py and other.py", None),
        ("python app.py", "fix gone.py", None),
        ("cd x && python app.py", "fix weather.py", None),
        ("ls", "fix weather.py", None),
    ],
)
def test_a_script_that_is_not_there_is_the_one_that_is_named(command: str, request_: str, mended: str | None) -> None:
    assert name_script(command, request_, ["weather.py", "other.py"]) == (mended or command)


def test_a_script_that_is_not_there_is_the_only_one_of_the_project() -> None:
    assert name_script("python app.py -v", "count to 0", ["a.txt", "count.py", "test_count.py"]) == "python count.py -v"
    assert name_script("python app.py", "count to 0", ["count.py", "more.py"]) == "python app.py"
    assert name_script("python ./app.py", "count to 0", ["app.py"]) == "python ./app.py"
    assert name_script("python app.py", "count to 0", ["test_count.py"]) == "python app.py"


@pytest.mark.parametrize(
    ("content", "written"),
    [
        ("theme: dark\nfontSize: 14\n", '{\n  "theme": "dark",\n  "fontSize": 14\n}\n'),
        ("on = true,\nname = 'x y'", '{\n  "on": true,\n  "name": "x y"\n}\n'),
        ('{"theme": "dark"}\n', None),
        ("", None),
        ("theme: dark\n- one\n", None),
    ],
)
def test_settings_in_lines_become_json(content: str, written: str | None) -> None:
    assert write_as_json(content) == (written or content)


COUNTED = "Count the words in poem.txt and save the number, nothing else, in words.txt."


@pytest.mark.parametrize(
    ("command", "mended"),
    [
        ("wc -w poem.txt > words.txt", "wc -w < poem.txt > words.txt"),
        ("wc -w poem.txt >words.txt; cat words.txt", "wc -w < poem.txt >words.txt; cat words.txt"),
        ("wc -l docs/poem.txt >> words.txt", "wc -l < docs/poem.txt >> words.txt"),
        ("wc --words poem.txt | tee words.txt", "wc --words < poem.txt | tee words.txt"),
        ("echo $(wc -w poem.txt) > words.txt", "echo $(wc -w < poem.txt) > words.txt"),
        ('echo "$(wc -w poem.txt)" > words.txt', 'echo "$(wc -w < poem.txt)" > words.txt'),
        ("wc -w poem.txt | awk '{print $1}' > words.txt", None),
        ("wc -w < poem.txt > words.txt", None),
        ("cat poem.txt | wc -w > words.txt", None),
        ("wc -w poem.txt other.txt > words.txt", None),
        ("wc -w *.txt > words.txt", None),
        ("wc poem.txt > words.txt", None),
        ("wc -w poem.txt", None),
        ("wc -w poem.txt 2>/dev/null", None),
    ],
)
def test_a_number_goes_into_a_file_alone(command: str, mended: str | None) -> None:
    assert count_alone(command, COUNTED) == (mended or command)


@pytest.mark.parametrize(
    ("request_", "alone"),
    [
        ("How many lines has a.txt? Put it into n.txt.", True),
        ("Write the number of names in a.txt to n.txt", True),
        ("write the total of lines of a.txt into n.txt", True),
        ("Run wc -l a.txt > n.txt and count on it.", False),
        ("Write the file name and the number of lines of a.txt into n.txt.", False),
        ("Write the number of lines of each file into n.txt, one after the other.", False),
        ("Count the lines of a.txt and write the output of the command into n.txt.", False),
        ("Save the sizes of a.txt in n.txt.", False),
    ],
)
def test_the_name_of_the_file_stays_where_it_is_wanted(request_: str, alone: bool) -> None:
    command = "wc -l a.txt > n.txt"
    assert count_alone(command, request_) == ("wc -l < a.txt > n.txt" if alone else command)


SCRIPTS = {"count.sh": "#!/bin/sh\n", "b.sh": "#!/usr/bin/env bash\n", "bin/run.py": "print(1)\n", "x.js": ""}


@pytest.mark.parametrize(
    ("command", "run"),
    [
        ("count.sh", "sh count.sh"),
        ("./count.sh", "sh count.sh"),
        ("./count.sh a b > out.txt", "sh count.sh a b > out.txt"),
        ("b.sh", "bash b.sh"),
        ("ls && bin/run.py -v; x.js", "ls && python bin/run.py -v; node x.js"),
        ("bin/run.py | sort", "python bin/run.py | sort"),
        ("cat count.sh", None),
        ("sh count.sh", None),
        ("gone.sh", None),
        ("count.sh.bak", None),
        ("chmod +x count.sh && ./count.sh", None),
        ("cd bin && run.py", None),
        ("echo 'a; count.sh'", None),
        ("cat > a.txt <<EOF\ncount.sh\nEOF", None),
    ],
)
def test_a_script_that_the_shell_would_not_find_is_run_by_its_interpreter(command: str, run: str | None) -> None:
    assert run_scripts(command, SCRIPTS.get, lambda _: False) == (run or command)
    assert run_scripts(command, SCRIPTS.get, lambda _: True) == command


@pytest.mark.parametrize(
    ("asked", "command", "mended"),
    [
        ("How many lines are there?", "wc -l < a.txt > n.txt", "wc -l < a.txt"),
        ("Add an option --all to a.py", "python a.py --all > out.txt; cat out.txt", "python a.py --all"),
        ("Add an option --all to a.py", "python a.py > out.txt && cat out.txt", "python a.py"),
        ("Add a method remove(item) to the Store class", "python a.py > out.txt; cat out.txt", "python a.py"),
        ("join in a.py must split words", "python a.py > out.txt", "python a.py"),
        ("Run a.py and save what it prints", "python a.py > out.txt", ""),
        ("Run a.py and store its output", "python a.py > out.txt", ""),
        ("Add Carla to our team", "echo Carla >> team.txt", ""),
        ("The version is 2 now", "echo 2 > version.txt", ""),
        ("Add Carla to our team", "python add.py >> team.txt", "python add.py"),
        ("Combine a.txt and b.txt", "cat a.txt b.txt > all.txt", ""),
        ("Run a.py, out.txt shall have it", "python a.py > out.txt", ""),
        ("How many lines are there?", "grep x a.txt > n.txt; wc -l n.txt", ""),
        ("How many lines are there?", "wc -l a.txt 2> err.txt", ""),
    ],
)
def test_output_is_printed_where_nobody_asked_for_a_file(asked: str, command: str, mended: str) -> None:
    assert print_answer(command, asked) == (mended or command)
    assert print_answer("python a.py > out.txt", "Write a script a.py", lambda _: True) == "python a.py"
    for kept in ("echo Carla >> team.txt", "echo 2 > version.txt", "python a.py >> log.txt"):
        assert print_answer(kept, "Add Carla to our team", lambda _: True) == kept


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("sed -i 's/1/2/' a.py", True),
        ("echo x >> a.py", True),
        ("rm -f a.py b.py", True),
        ("mv a.py c.py", True),
        ("cp b.py a.py", True),
        ("cat b.py | tee a.py", True),
        ("cd x && sed -n 1p b.py && rm ./a.py", True),
        ("cp a.py b.py", False),
        ("sed -n 1p a.py", False),
        ("python a.py > out.txt", False),
        ("rm b.py; cat a.py", False),
        ("rm data.py", False),
        ("echo 'rm a.py'", False),
    ],
)
def test_a_file_that_a_command_changes_is_seen(command: str, changes: bool) -> None:
    assert names_as_target(command, "a.py") is changes
