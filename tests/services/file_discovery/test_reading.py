"""One directory as the system shows it, here and in a process of its own."""

import io
import marshal
import os
import subprocess
import sys
from pathlib import Path

from ollm.services.file_discovery import reading
from ollm.services.file_discovery.reading import (
    GONE,
    SIZE_BYTES,
    UNREADABLE,
    read_directory,
    read_signature,
    send_value,
)
from tests.services.file_discovery.looking import plant


def test_files_folders_and_the_rest_are_told_apart_and_in_order(root: Path) -> None:
    plant(root, "b", "a", "é")
    (root / "sub2").mkdir()
    (root / "sub1").mkdir()
    (root / "link").symlink_to("a")
    os.mkfifo(root / "pipe")

    seen, failure, files, folders, others = read_directory(str(root))

    assert (failure, files, folders, sorted(others)) == ("", ["a", "b", "é"], ["sub1", "sub2"], ["link", "pipe"])
    assert seen == read_signature(str(root))


def test_a_directory_of_files_alone_and_one_without_any(root: Path) -> None:
    plant(root, "y", "x")
    (root / "empty").mkdir()

    assert read_directory(str(root / "empty"))[1:] == ("", [], [], [])
    (root / "empty").rmdir()
    assert read_directory(str(root))[1:] == ("", ["x", "y"], [], [])


def test_what_is_gone_is_told_apart_from_what_may_not_be_read(root: Path) -> None:
    plant(root, "file")

    assert read_directory(str(root / "nowhere")) == (None, GONE, [], [], [])
    assert read_directory(str(root / "file"))[1:] == (UNREADABLE, [], [], [])


def test_a_signature_changes_with_the_file(root: Path) -> None:
    file = root / "a"
    assert read_signature(str(file)) is None
    assert read_signature("a\0b") is None
    file.write_text("x")
    os.utime(file, ns=(1, 1))
    before = read_signature(str(file))

    assert before == (1, 1, file.stat().st_ino)
    file.write_text("xy")
    os.utime(file, ns=(1, 1))
    assert read_signature(str(file)) == (1, 2, file.stat().st_ino)


def test_values_are_sent_with_their_length_before_them() -> None:
    stream = io.BytesIO()

    send_value(stream, ["a", "b"])

    data = stream.getvalue()
    assert int.from_bytes(data[:SIZE_BYTES], "big") == len(data) - SIZE_BYTES
    assert marshal.loads(data[SIZE_BYTES:]) == ["a", "b"]


def test_as_a_program_it_answers_every_list_and_ends_with_its_input(root: Path) -> None:
    plant(root, "a", "sub/b")
    orders = io.BytesIO()
    send_value(orders, [str(root), str(root / "sub")])
    send_value(orders, [str(root / "nowhere")])

    ran = subprocess.run(
        [sys.executable, "-I", "-S", reading.__file__], input=orders.getvalue(), capture_output=True, check=True
    )

    answers, left = [], io.BytesIO(ran.stdout)
    while size := left.read(SIZE_BYTES):
        answers.append(marshal.loads(left.read(int.from_bytes(size, "big"))))
    assert answers == [
        [read_directory(str(root)), read_directory(str(root / "sub"))],
        [(None, GONE, [], [], [])],
    ]


def test_nothing_but_the_interpreter_s_own_is_imported(root: Path) -> None:
    code = (
        f"import runpy, sys; runpy.run_path({reading.__file__!r}); print('ollm' in sys.modules, 'json' in sys.modules)"
    )

    ran = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.split() == ["False", "False"]
