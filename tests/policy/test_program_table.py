"""Every program that is known, in the same twelve lines: what it would start, and what is granted of it.

A row: for each line whether it runs (`r`), asks (`?`) or is denied (`D`) where only `rm` is; what is offered to be
granted for `P a b` and for `P run a b`; what becomes of `P --version`; the programs. Those that share a record stand for each other.
"""

import pytest

from ollm.policy.engine import PolicyEngine
from ollm.policy.shell.programs import PROGRAMS
from tests.policy.conftest import Place, rule, shell

LINES = (
    "P rm x", "P a rm x", "P a b rm x", "P 'rm x'", "P a 'rm x'", "P !rm", "P -c 'rm x'", "P -- rm x", "P run rm x",
    "P exec a rm x", "P shell rm x", "P x=1 rm x",
)  # fmt: skip
LETTERS = {"allow": "r", "ask": "?", "deny": "D"}
TABLE = """
???????????? | P a b | P run a b | ? | export read getopts let mapfile alias unalias set source fc
???????????? | P a b | P run a b | r | date hostname sed
???DD?D????? | P a b | P run a b | ? | complete
???r?rr????? | P a b | P run a b | ? | xxd
???r?rr????? | P a b | P run a b | r | uniq
D??????D???? | P a b | P run a b | ? | exec
D??D???D???D | P a b | P run a b | ? | eval
DDDDDDDDDDDD | =P a b | =P run a b | ? | rm
DDDDDrDDDDDD | =P a b | =P run a b | ? | bwrap gdb at
DDDDDrDDDDDD | P a b | P run a b | ? | script setarch entr watchexec
Drr????Dr?rr | P a b | P run a b | ? | --
DrrDDrDDrrrr | =P a b | =P run a b | ? | npx
DrrDrrDDr?rD | P a b | P run a b | ? | watch parallel
Drrrrr?Dr?rr | P a b | P run a b | ? | command
DrrrrrrDr?r? | P a b | P run a b | ? | trap
DrrrrrrDr?rD | =a b | =run a b | ? | time
DrrrrrrDr?rD | P a b | P run a b | ? | env sudo doas
DrrrrrrDr?rr | =a b | =run a b | ? | nice nohup stdbuf
DrrrrrrDr?rr | P a b | P run a b | ? | setsid gtime ionice pkexec xargs unshare nsenter setpriv prlimit systemd-run
DrrrrrrDr?rr | P a b | P run a b | ? | strace ltrace fakeroot proot rlwrap xvfb-run numactl cpulimit proxychains caffeinate
DrrrrrrDr?rr | P a b | P run a b | ? | sshpass tini dumb-init daemonize
rDrrDrDrDrDD | P a b | P run a b | ? | sg
rDrrDrrrDrDD | P a b | P run a b | ? | ssh
rDrrrrDrDrDD | P a b | P run a b | ? | flock
rDrrrrrrDrDD | =b | =a b | ? | timeout
rDrrrrrrDrDD | P a b | P run a b | ? | taskset gtimeout chrt chroot runcon mosh
rrrDDrDrrrrr | =P a b | =P run a b | ? | ansible
rrrrrr??rrrr | =P a b | =P run a b | r | git
rrrrrr?rrrrr | - | - | ? | printf
rrrrrr?rrrrr | - | - | r | cat tac nl rev paste strings zcat readlink realpath cmp
rrrrrr?rrrrr | - | - | r | cksum md5sum sum fold expand unexpand join comm df base64
rrrrrr?rrrrr | - | - | r | find pwd id groups nproc uptime tty basename dirname seq
rrrrrr?rrrrr | - | - | r | sleep which type uname cd
rrrrrrDrrrrr | =P a b | =P run a b | ? | su runuser sh
rrrrrrDrrrrr | =P a b | =P run a b | r | bash
rrrrrrrrDDDr | =P a b | =P run a b | ? | op
rrrrrrrrDDrr | =P a b | =P run a b | ? | docker podman kubectl oc
rrrrrrrrDrrr | =P a b | =P run a b | ? | poetry tmux
rrrrrrrrDrrr | =P a b | P run a | ? | uv
rrrrrrrrr??r | - | - | r | ps
rrrrrrrrrDrr | =P a b | =P run a b | ? | bundle ip
rrrrrrrrrDrr | =P a b | P run a | ? | npm pnpm yarn bun
rrrrrrrrrrDr | =P a b | =P run a b | ? | adb
rrrrrrrrrrrr | - | - | ? | diff
rrrrrrrrrrrr | - | - | r | ls head tail wc sort cut fmt column stat file
rrrrrrrrrrrr | - | - | r | du tree od hexdump grep zgrep jq rg fd ag
rrrrrrrrrrrr | - | - | r | true : test tr free awk
???????????? | P a b | P run a b | ? | exit
rrrrrrrrrrrr | =P a b | =P run a b | ? | cp mv ln install rsync scp sftp tee touch shred
rrrrrrrrrrrr | =P a b | =P run a b | ? | mkdir mkfifo mknod truncate chmod chown chgrp chattr setfacl dd
rrrrrrrrrrrr | =P a b | =P run a b | ? | patch unzip zip openssl split cargo go pip crontab vagrant
rrrrrrrrrrrr | =P a b | =P run a b | ? | view sqlite3 man systemctl python2 python ruby vim emacs ed
rrrrrrrrrrrr | =P a b | =P run a b | ? | ex
rrrrrrrrrrrr | =P a b | =P run a b | r | curl wget tar gcc g++ node java perl
rrrrrrrrrrrr | P a | P run | ? | gh gradle mvn just tox dotnet
rrrrrrrrrrrr | P a | P run | r | make
rrrrrrrrrrrr | P | P | ? | pytest mypy eslint tsc flake8 jest ruff
"""


@pytest.fixture(scope="module")
def engines(place: Place) -> tuple[PolicyEngine, PolicyEngine]:
    return place.engine([rule("deny", "program", "rm")], "allow"), place.engine(trusted=True)


def tell_row(engines: tuple[PolicyEngine, PolicyEngine], program: str) -> str:
    deny, usual = engines
    letters = [LETTERS[shell(deny, line.replace("P", program, 1)).decision] for line in LINES]
    granted = [shell(usual, f"{program} {rest}") for rest in ("a b", "run a b")]
    offered = [found.grant.removeprefix("shell:").replace(program, "P", 1) if found.grant else "-" for found in granted]
    return " | ".join(["".join(letters), *offered, LETTERS[shell(usual, f"{program} --version").decision]])


@pytest.mark.parametrize("row", TABLE.strip().splitlines())
def test_what_a_program_starts_and_what_is_granted_of_it(engines: tuple[PolicyEngine, PolicyEngine], row: str) -> None:
    told, _, programs = row.rpartition(" | ")
    assert {program: tell_row(engines, program) for program in programs.split()} == dict.fromkeys(
        programs.split(), told
    )


def test_every_program_is_in_the_table() -> None:
    named = {id(PROGRAMS[name]) for row in TABLE.strip().splitlines() for name in row.rpartition(" | ")[2].split()}
    assert named == set(map(id, PROGRAMS.values()))
