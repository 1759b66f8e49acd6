"""The system calls a boxed process may make, tried in a child under the filter."""

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from ollm.system.sandbox import kernel
from ollm.system.sandbox.levels import detect_level
from ollm.system.sandbox.seccomp import CallFilter, build_box_filter, fail_with, has_any_bit, is_one_of
from tests.system.sandbox.children import run_in_child

pytestmark = pytest.mark.skipif(not kernel.LINUX or not kernel.AUDIT_ARCH, reason="seccomp is Linux's")
DENIED, NO_SUCH_CALL, NOT_PERMITTED = f"errno {errno.EACCES}", f"errno {errno.ENOSYS}", f"errno {errno.EPERM}"


def try_under(calls: CallFilter, body: Callable[[], object]) -> str:
    def work() -> object:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        calls.install(listen=False)
        return body()

    return run_in_child(work)


def plain(**more: object) -> CallFilter:
    usual = {"network": False, "unix_sockets": False, "namespaces": True}
    return build_box_filter(**{**usual, **more})  # type: ignore[arg-type]


def open_socket(family: int, kind: int = socket.SOCK_STREAM, protocol: int = 0) -> str:
    socket.socket(family, kind, protocol).close()
    return "opened"


def test_what_no_rule_names_is_allowed(tmp_path: Path) -> None:
    assert try_under(CallFilter(), lambda: (tmp_path / "f").write_text("x")) == "1"


@pytest.mark.parametrize(
    ("name", "arguments"), [("unshare", (0,)), ("ptrace", (0, 0, 0, 0)), ("chroot", (b"/",)), ("bpf", (0, None, 0))]
)
def test_calls_that_lead_out_of_a_box_are_not_permitted(name: str, arguments: tuple) -> None:
    assert try_under(plain(), lambda: kernel.call(name, *arguments)) == NOT_PERMITTED


def test_namespaces_are_not_made_by_clone_and_threads_still_are() -> None:
    import threading

    def start_thread() -> str:
        done = threading.Thread(target=lambda: None)
        done.start()
        done.join()
        return "done"

    assert try_under(plain(), lambda: kernel.call("clone", kernel.CLONE_NEWUSER, None)) == NOT_PERMITTED
    assert try_under(plain(namespaces=False), lambda: kernel.call("clone3", None, 0)) == NO_SUCH_CALL
    assert try_under(plain(), start_thread) == "'done'"


@pytest.mark.parametrize(
    ("network", "unix_sockets", "family", "kind", "opened"),
    [
        (False, False, socket.AF_INET, socket.SOCK_STREAM, False),
        (True, False, socket.AF_INET, socket.SOCK_STREAM, True),
        (True, False, socket.AF_INET6, socket.SOCK_DGRAM, True),
        (False, True, socket.AF_INET, socket.SOCK_STREAM, False),
        (False, False, socket.AF_UNIX, socket.SOCK_STREAM, False),
        (False, True, socket.AF_UNIX, socket.SOCK_STREAM, True),
        (False, True, socket.AF_UNIX, socket.SOCK_DGRAM, False),
        (False, True, socket.AF_UNIX, socket.SOCK_RAW, False),
        (True, True, socket.AF_NETLINK, socket.SOCK_RAW, True),
        (False, True, socket.AF_NETLINK, socket.SOCK_RAW, False),
    ],
)
def test_which_sockets_can_be_opened(network: bool, unix_sockets: bool, family: int, kind: int, opened: bool) -> None:
    found = try_under(plain(network=network, unix_sockets=unix_sockets), lambda: open_socket(family, kind))

    assert found == ("'opened'" if opened else DENIED)


def test_of_netlink_only_routes_can_be_asked_for() -> None:
    assert try_under(plain(network=True), lambda: open_socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)) == DENIED


def test_pairs_of_stream_sockets_can_always_be_made_and_of_datagrams_never() -> None:
    def pair(kind: int) -> str:
        for one in socket.socketpair(socket.AF_UNIX, kind):
            one.close()
        return "made"

    assert try_under(plain(), lambda: pair(socket.SOCK_STREAM)) == "'made'"
    assert try_under(plain(), lambda: pair(socket.SOCK_DGRAM)) == DENIED


def test_nothing_is_typed_into_a_terminal() -> None:
    import fcntl

    assert try_under(plain(), lambda: fcntl.ioctl(0, 0x5412, b"x")) == NOT_PERMITTED


def test_without_mounts_owners_attributes_and_shared_memory_are_out(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")

    def give(user: int, group: int) -> None:
        os.chown(tmp_path / "f", user, group)

    without = plain(namespaces=False)
    assert try_under(without, lambda: give(os.getuid() + 1, os.getgid())) == NOT_PERMITTED
    assert try_under(without, lambda: give(-1, os.getgid() + 1)) == NOT_PERMITTED
    assert try_under(without, lambda: give(os.getuid(), os.getgid())) == "None"  # what is ours already may stay ours
    assert try_under(without, lambda: give(-1, -1)) == "None"
    assert try_under(plain(), lambda: give(os.getuid(), os.getgid())) == "None"
    unsupported = f"errno {errno.EOPNOTSUPP}"
    assert try_under(without, lambda: os.setxattr(tmp_path / "f", "user.a", b"x")) == unsupported
    assert try_under(without, lambda: kernel.call("shmget", 1, 1, 0)) == NOT_PERMITTED


def test_without_mounts_other_processes_keep_their_limits_and_ranks() -> None:
    import resource

    def limit(process: int) -> None:
        resource.prlimit(process, resource.RLIMIT_CORE, (0, 0))

    other = os.getpid()
    assert try_under(plain(namespaces=False), lambda: limit(other)) == NOT_PERMITTED
    assert try_under(plain(namespaces=False), lambda: limit(0)) == "None"
    assert try_under(plain(namespaces=False), lambda: os.setpriority(os.PRIO_PROCESS, other, 5)) == NOT_PERMITTED
    assert try_under(plain(namespaces=False), lambda: os.setpriority(os.PRIO_PROCESS, 0, 5)) == "None"


def test_a_rule_may_look_at_bits_and_values_of_an_argument() -> None:
    calls = CallFilter()
    calls.add_rule(["openat"], fail_with(errno.EXDEV), has_any_bit(2, os.O_WRONLY | os.O_RDWR))
    calls.add_rule(["ioctl"], fail_with(errno.EXDEV), is_one_of(1, 1, 2))

    assert try_under(calls, lambda: os.open("/dev/null", os.O_WRONLY)) == f"errno {errno.EXDEV}"
    assert try_under(calls, lambda: os.open("/dev/null", os.O_RDONLY) > 0) == "True"
    assert try_under(calls, lambda: kernel.call("ioctl", 0, 2)) == f"errno {errno.EXDEV}"
    assert try_under(calls, lambda: kernel.call("ioctl", 0, 3)) != f"errno {errno.EXDEV}"


def test_a_container_that_forbids_unshare_still_has_landlock() -> None:
    if detect_level()[0] == "none":
        pytest.skip("there is no Landlock here")
    calls = CallFilter()
    calls.add_rule(["unshare", "setns", "mount"], fail_with(errno.EPERM))
    calls.add_rule(["clone"], fail_with(errno.EPERM), has_any_bit(0, kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS))
    calls.add_rule(["clone3"], fail_with(errno.ENOSYS))
    assert try_under(calls, lambda: detect_level()[0]) == "'landlock'"
