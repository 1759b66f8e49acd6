"""Programs that start another one they are told about somewhere in their words: containers, terminals, task runners.

How each of them finds the command is not followed word by word: every reading counts, and each can only forbid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from ollm.domain.struct import Data
from ollm.policy.shell.tables import split_names
from ollm.policy.shell.unwrap import InnerCommand
from ollm.policy.shell.words import ShellWord

CommandFinder = Callable[[Sequence[ShellWord]], list[InnerCommand]]
_MAX_WORDS = 6000  # more words do not fit into a line that is read at all
_COMMAND_PREFIX = (
    r"(?i)\s*(?:--?[\w-]+=)?(?:\+|:?!|\\!|\.(?:shell|system)\b|(?:platform )?shell\b|exec:|system:|spawn\b|system\b"
    r"|exec\b=?|run-shell\b|set-hook\b|\$\{?\w+\}?:)*\s*[\"']?"
)


class Launcher(Data, frozen=True):
    """`after`: the command stands after one of these words; right after the name when there are none. `words`: it is
    the rest of the words, after at most so many `own` ones. `scripts`: it is one word, quoted; with `marked` only
    behind a mark."""

    after: tuple[str, ...] = ()
    own: int = _MAX_WORDS
    words: bool = True
    scripts: bool = True
    marked: bool = False


def find_launched(how: Launcher, words: Sequence[ShellWord]) -> list[InnerCommand]:
    """Everything the words could make the program run."""
    places = [index for index, word in enumerate(words[:_MAX_WORDS]) if word.text in how.after]
    if how.after and not places:
        return []
    rest = words[(places[0] if places else 0) + 1 :][:_MAX_WORDS]
    found: list[InnerCommand] = []
    if how.words:
        found += [InnerCommand(words=_drop_dashes(rest[index:]), guess=True) for index in _find_starts(rest, how.own)]
    if how.scripts:
        quoted = [word.text for word in rest if " " in word.text]
        found += [
            InnerCommand(script=text, guess=True)
            for text in map(strip_command_prefix, quoted)
            if not how.marked or text not in quoted
        ]
    return found


def _find_starts(words: Sequence[ShellWord], own: int) -> list[int]:
    """Where the command may begin: a word right after an option may be its value."""
    found: list[int] = []
    for index, word in enumerate(words):
        if word.text.startswith("-") and word.text != "--":
            continue
        before = words[index - 1].text if index else ""
        if word.text == "--":
            return [*found, index + 1] if index + 1 < len(words) else found
        found.append(index)
        own -= not before.startswith("-") or "=" in before
        if own < 0:
            break
    return found


def _drop_dashes(words: Sequence[ShellWord]) -> tuple[ShellWord, ...]:
    """`PROGRAM -- ARGUMENT…` runs the program with these arguments."""
    return tuple(word for word in words if word.text != "--")


def strip_command_prefix(text: str) -> str:
    """A command without what its host wants before it: `!` in an editor, `shell` in a debugger, `--exec=`."""
    rest = re.sub(_COMMAND_PREFIX, "", text, count=1)
    return rest.rstrip("\"'") if rest.count('"') % 2 or rest.count("'") % 2 else rest


_LAUNCHERS: dict[str, Launcher] = {
    **dict.fromkeys(split_names("bwrap perf start-stop-daemon nodemon ld.so ld-linux-x86-64.so.2"), Launcher()),
    **dict.fromkeys(
        split_names("script capsh flatpak-spawn ssh-agent setarch cgexec dtach abduco sem entr"), Launcher()
    ),
    **dict.fromkeys(split_names("npx pnpx bunx uvx"), Launcher(own=0)),
    **dict.fromkeys(split_names("dotenv envdir setlock chpst softlimit concurrently"), Launcher()),
    **dict.fromkeys(
        split_names("torify tsocks graftcp wine qemu-x86_64 qemu-aarch64 autossh pssh clush et"), Launcher()
    ),
    **dict.fromkeys(split_names("gdb lldb rr xterm konsole alacritty kitty gnome-terminal screen"), Launcher()),
    **dict.fromkeys(split_names("hyperfine watchmedo chokidar nc ncat socat watchexec at batch"), Launcher()),
    **dict.fromkeys(
        split_names("docker podman nerdctl docker-compose podman-compose"),
        Launcher(after=split_names("run exec"), own=1, scripts=False),
    ),
    **dict.fromkeys(
        split_names("kubectl oc lxc incus"), Launcher(after=split_names("exec run debug"), own=1, scripts=False)
    ),
    **dict.fromkeys(
        split_names("uv poetry pipenv pdm hatch rye pixi conda mamba micromamba pipx"),
        Launcher(after=split_names("run"), own=0),
    ),
    **dict.fromkeys(
        split_names("op doppler dotenvx infisical zellij nix"),
        Launcher(after=split_names("run shell develop exec"), own=1),
    ),
    **dict.fromkeys(
        split_names("bundle npm pnpm yarn bun mise direnv asdf aws-vault chamber"),
        Launcher(after=split_names("exec dlx x"), own=1),
    ),
    "ip": Launcher(after=split_names("exec")),
    "adb": Launcher(after=split_names("shell")),
    "vagrant": Launcher(after=split_names("ssh"), words=False),
    "gcloud": Launcher(after=split_names("ssh"), words=False),
    "ansible": Launcher(words=False),
    "cargo": Launcher(after=split_names("watch"), words=False),
    "nix-shell": Launcher(words=False),
    "expect": Launcher(words=False),
    "tmux": Launcher(
        after=split_names(
            "new new-session new-window neww split-window splitw run-shell run if-shell if respawn-pane respawn-window"
            " send-keys send pipe-pane popup display-popup"
        )
    ),
    **dict.fromkeys(split_names("vim vi nvim view ex ed emacs less more most"), Launcher(words=False, marked=True)),
    **dict.fromkeys(split_names("sqlite3 psql mysql mariadb ftp lftp"), Launcher(words=False, marked=True)),
    "complete": Launcher(words=False),
}

LAUNCHERS: dict[str, CommandFinder] = {name: partial(find_launched, how) for name, how in _LAUNCHERS.items()}
