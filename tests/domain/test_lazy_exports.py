"""Packages whose names are imported when they are first used."""

import subprocess
import sys

import pytest

import ollm
import ollm.app
import ollm.services.snapshots
import ollm.store.session_files
from ollm.domain.lazy_exports import lazy_exports


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
