"""A part that waits until it is asked for."""

import subprocess
import sys

import pytest

import ollm
import ollm.app
import ollm.services.snapshots
import ollm.store.session_files
from ollm.domain.lazy import Lazy
from ollm.domain.lazy_exports import lazy_exports


def test_a_part_is_built_by_the_first_who_asks_and_once_only() -> None:
    built: list[object] = []

    def build() -> object:
        built.append(object())
        return built[-1]

    part = Lazy(build)

    assert part.built is None
    assert built == []
    assert part.get() is part.get() is part.built
    assert len(built) == 1


def test_a_part_that_could_not_be_built_is_tried_again() -> None:
    outcomes = [None, "built"]

    def build() -> str:
        outcome = outcomes.pop(0)
        if outcome is None:
            raise OSError
        return outcome

    part = Lazy(build)
    try:
        part.get()
    except OSError:
        assert part.built is None
    assert part.get() == "built"


@pytest.mark.parametrize("package", [ollm, ollm.app, ollm.services.snapshots, ollm.store.session_files])
def test_every_name_a_package_lists_can_be_had_from_it(package: object) -> None:
    assert all(getattr(package, name) is not None for name in dir(package))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    get_attribute, list_names = lazy_exports("ollm.domain", {"errors": ("OllmError",)})

    assert get_attribute("OllmError").__name__ == "OllmError"
    assert list_names() == ["OllmError"]
    with pytest.raises(AttributeError, match=r"module 'ollm\.domain' has no attribute 'OllmErorr'"):
        get_attribute("OllmErorr")


def test_importing_the_package_imports_none_of_its_floors() -> None:
    code = "import sys, ollm; print(sorted(name for name in sys.modules if name.startswith('ollm.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "['ollm.domain', 'ollm.domain.lazy_exports']\n"
