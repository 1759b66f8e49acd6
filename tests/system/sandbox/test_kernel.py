"""The system calls that boxes are made of."""

import errno
from pathlib import Path

import pytest

from ollm.system.sandbox import kernel
from tests.system.sandbox.children import run_in_child

pytestmark = pytest.mark.skipif(not kernel.AUDIT_ARCH, reason="the numbers are those of Linux on two machines")


def test_no_two_calls_of_a_machine_have_one_number() -> None:
    for column in (0, 1):
        numbers = [pair[column] for pair in kernel.NUMBERS.values() if pair[column] >= 0]
        assert len(numbers) == len(set(numbers))


def test_a_call_is_made_by_its_name() -> None:
    with pytest.raises(FileExistsError):
        kernel.call("mkdirat", kernel.AT_FDCWD, b"/tmp", 0o700)


def test_a_refusal_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError, match="Bad file descriptor") as caught:
        kernel.call("setns", -1, 0)
    assert caught.value.errno == errno.EBADF


def test_prctl_sets_what_it_is_told() -> None:
    def restrict() -> str:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        with Path("/proc/self/status").open(encoding="ascii", errors="replace") as status:
            return next(line.split()[1] for line in status if line.startswith("NoNewPrivs:"))

    assert run_in_child(restrict) == "'1'"
    with pytest.raises(OSError, match="Invalid argument"):
        kernel.prctl(99_999)
