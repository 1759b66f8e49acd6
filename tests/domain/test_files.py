"""Files of a project: the absolute path is put together from root and relative path."""

from ollm.domain.files import FileEntry


def test_a_path_is_root_and_relative_path() -> None:
    assert FileEntry("/home/me", "src/a.py").path == "/home/me/src/a.py"


def test_the_root_of_the_file_system_adds_no_second_slash() -> None:
    assert FileEntry("/", "etc/hosts").path == "/etc/hosts"
