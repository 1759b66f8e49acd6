"""Programs that start another one they are told about somewhere in their words: containers, terminals, task runners.

How each of them finds the command is not followed word by word: every reading counts, and each can only forbid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from ollm.domain.struct import Data
from ollm.policy.shell.tables import names
from ollm.policy.shell.unwrap import Inner
from ollm.policy.shell.words import Word

Finder = Callable[[Sequence[Word]], list[Inner]]
_MOST = 6000  # more words do not fit into a line that is read at all
_MARK = (
    r"(?i)\s*(?:--?[\w-]+=)?(?:\+|:?!|\\!|\.(?:shell|system)\b|(?:platform )?shell\b|exec:|system:|spawn\b|system\b"
    r"|exec\b=?|run-shell\b|set-hook\b|\$\{?\w+\}?:)*\s*[\"']?"
)


class Launcher(Data, frozen=True):
    """`after`: the command stands after one of these words; right after the name when there are none. `words`: it is
    the rest of the words, after at most so many `own` ones. `scripts`: it is one word, quoted; with `marked` only
    behind a mark."""

    after: tuple[str, ...] = ()
    own: int = _MOST
    words: bool = True
    scripts: bool = True
    marked: bool = False


def launched(how: Launcher, words: Sequence[Word]) -> list[Inner]:
    """Everything the words could make the program run."""
    places = [index for index, word in enumerate(words[:_MOST]) if word.text in how.after]
    if how.after and not places:
        return []
    rest = words[(places[0] if places else 0) + 1 :][:_MOST]
    found: list[Inner] = []
    if how.words:
        found += [Inner(words=_without_dashes(rest[index:]), guess=True) for index in _starts(rest, how.own)]
    if how.scripts:
        quoted = [word.text for word in rest if " " in word.text]
        found += [
            Inner(script=text, guess=True) for text in map(unmarked, quoted) if not how.marked or text not in quoted
        ]
    return found


def _starts(words: Sequence[Word], own: int) -> list[int]:
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


def _without_dashes(words: Sequence[Word]) -> tuple[Word, ...]:
    """`PROGRAM -- ARGUMENT…` runs the program with these arguments."""
    return tuple(word for word in words if word.text != "--")


def unmarked(text: str) -> str:
    """A command without what its host wants before it: `!` in an editor, `shell` in a debugger, `--exec=`."""
    rest = re.sub(_MARK, "", text, count=1)
    return rest.rstrip("\"'") if rest.count('"') % 2 or rest.count("'") % 2 else rest


_LAUNCHERS: dict[str, Launcher] = {
    **dict.fromkeys(names("bwrap perf start-stop-daemon nodemon ld.so ld-linux-x86-64.so.2"), Launcher()),
    **dict.fromkeys(names("script capsh flatpak-spawn ssh-agent setarch cgexec dtach abduco sem entr"), Launcher()),
    **dict.fromkeys(names("npx pnpx bunx uvx"), Launcher(own=0)),
    **dict.fromkeys(names("dotenv envdir setlock chpst softlimit concurrently"), Launcher()),
    **dict.fromkeys(names("torify tsocks graftcp wine qemu-x86_64 qemu-aarch64 autossh pssh clush et"), Launcher()),
    **dict.fromkeys(names("gdb lldb rr xterm konsole alacritty kitty gnome-terminal screen"), Launcher()),
    **dict.fromkeys(names("hyperfine watchmedo chokidar nc ncat socat watchexec at batch"), Launcher()),
    **dict.fromkeys(
        names("docker podman nerdctl docker-compose podman-compose"),
        Launcher(after=names("run exec"), own=1, scripts=False),
    ),
    **dict.fromkeys(names("kubectl oc lxc incus"), Launcher(after=names("exec run debug"), own=1, scripts=False)),
    **dict.fromkeys(
        names("uv poetry pipenv pdm hatch rye pixi conda mamba micromamba pipx"), Launcher(after=names("run"), own=0)
    ),
    **dict.fromkeys(
        names("op doppler dotenvx infisical zellij nix"), Launcher(after=names("run shell develop exec"), own=1)
    ),
    **dict.fromkeys(
        names("bundle npm pnpm yarn bun mise direnv asdf aws-vault chamber"), Launcher(after=names("exec dlx x"), own=1)
    ),
    "ip": Launcher(after=names("exec")),
    "adb": Launcher(after=names("shell")),
    "vagrant": Launcher(after=names("ssh"), words=False),
    "gcloud": Launcher(after=names("ssh"), words=False),
    "ansible": Launcher(words=False),
    "cargo": Launcher(after=names("watch"), words=False),
    "nix-shell": Launcher(words=False),
    "expect": Launcher(words=False),
    "tmux": Launcher(
        after=names(
            "new new-session new-window neww split-window splitw run-shell run if-shell if respawn-pane respawn-window"
            " send-keys send pipe-pane popup display-popup"
        )
    ),
    **dict.fromkeys(names("vim vi nvim view ex ed emacs less more most"), Launcher(words=False, marked=True)),
    **dict.fromkeys(names("sqlite3 psql mysql mariadb ftp lftp"), Launcher(words=False, marked=True)),
    "complete": Launcher(words=False),
}

LAUNCHERS: dict[str, Finder] = {name: partial(launched, how) for name, how in _LAUNCHERS.items()}
