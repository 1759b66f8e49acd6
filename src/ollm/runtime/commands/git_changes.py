"""Changes of a git repository, attached to the text of a command in parts that fit the model's window.

Git runs as a confined helper: it changes nothing, reaches no network and starts no program that a repository names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.domain.errors import UsageError
from ollm.domain.messages import AnyPart
from ollm.runtime.base import Attachment, CommandReply, build_message_parts
from ollm.services.budget import compute_user_cap
from ollm.system.git_commands import run_git
from ollm.system.path_names import find_git_directories, is_environment_file
from ollm.system.sandbox.confined import add_settings, make_git_environment, make_helper_environment

if TYPE_CHECKING:
    from ollm.runtime.parts import ConversationParts, ConversationState

MAX_PARTS = 40
MIN_PART_TOKENS = 300
MAX_NEW_FILE_BYTES = 200_000
DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short", "--find-renames")
FILES = ("--", ":(top)", ":(exclude,top,glob,icase)**/.env", ":(exclude,top,glob,icase)**/.env.*")
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_REVISION = re.compile(r"[\w@.][\w./~^@{}+-]*")


def attach_changes(
    conversation: ConversationParts, kind: str, arguments: str, expand: Callable[[str], str | None]
) -> CommandReply:
    """Send the text of a command with changes attached. `kind` is the field `changes` of the command: `staged`, or
    `range` for one that the arguments begin with, else all that is not committed. `expand` makes the text."""
    git = _open_repository(conversation.workspace)
    revision, words = ("", arguments) if kind == "staged" else split_range(git, arguments)
    title, diff = _read_changes(git, kind, revision, conversation.workspace)
    if not diff.strip():
        return CommandReply(text="No changes.")
    prompt = conversation.prompt
    text = f"{(expand(words) or '').strip()}\n\n{title}"
    room = compute_user_cap(prompt.compute_budget()) * 3 // 4 - prompt.counter.count_text(text)
    parts = list(split_diff(diff, max(MIN_PART_TOKENS, room), prompt.counter.count_text))
    if len(parts) > MAX_PARTS:
        action = "Name a smaller range, or use a model with a larger context window."
        raise UsageError(f"The changes are too large: {len(parts)} parts of {room:,} tokens.", action=action)
    if many := len(parts) > 1:
        text += f" They come in {len(parts)} parts. This is the first: only note briefly what you find in it."
    names = [f"changes, part {number} of {len(parts)}" if many else "changes" for number in range(1, len(parts) + 1)]
    attachments = tuple(Attachment(name=name, text=part) for name, part in zip(names, parts, strict=True))
    conversation.state.material = (text, attachments)
    return CommandReply(follow_up="send", argument=text)


def take_material(
    state: ConversationState, text: str, attachments: tuple[Attachment, ...]
) -> tuple[tuple[Attachment, ...], list[tuple[AnyPart, ...]]]:
    """Add the first part that a command prepared for this text to the attachments. The others are messages."""
    (sent, parts), state.material = state.material, ("", ())
    if sent != text:
        return attachments, []
    notes = [f"Here are the {part.name}. Note briefly what you find in it." for part in parts[1:-1]]
    notes += [f"Here are the {part.name}. Now answer for all parts together." for part in parts[1:][-1:]]
    later = [build_message_parts(note, (part,)) for note, part in zip(notes, parts[1:], strict=True)]
    return (*attachments, parts[0]), later


Git = Callable[..., str]


def _open_repository(workspace: Path) -> Git:
    top = next((folder for folder in (workspace, *workspace.parents) if (folder / ".git").exists()), None)
    if top is None:
        raise UsageError(f"{workspace} is not in a git repository.")
    readable = [str(top), *find_git_directories(str(top))]
    variables = {**make_helper_environment(os.environ), **make_git_environment(), "GIT_CONFIG_NOSYSTEM": "1"}
    variables |= {"GIT_CONFIG_GLOBAL": os.devnull, "HOME": os.devnull, "LC_ALL": "C.UTF-8"}
    variables = add_settings(variables, {"safe.directory": "*"})

    def run(*words: str, check: bool = True) -> str:
        return run_git(workspace, variables, *words, check=check, readable=readable).decode(errors="replace")

    return run


def split_range(git: Git, arguments: str) -> tuple[str, str]:
    """Split the range of commits from the words behind it. The first word is one if git knows it; behind `RANGE --` it
    is an error if git does not."""
    named, mark, words = f"{arguments} ".partition(" -- ")
    sure = bool(mark) and len(named.split()) == 1
    first, _, rest = (f"{named} {words}" if sure else arguments).strip().partition(" ")
    if _REVISION.fullmatch(first) and git("rev-parse", "--quiet", "--revs-only", first, check=False).strip():
        return first, rest.strip()
    if sure or ".." in first:
        raise UsageError(f"git knows no revision {first}.", action="In CI, fetch the history of both sides first.")
    return "", arguments.strip()


def _read_changes(git: Git, kind: str, revision: str, workspace: Path) -> tuple[str, str]:
    if revision:
        return f"The changes are those of `git diff {revision}`.", git(*DIFF, revision, *FILES)
    if kind == "staged" and (staged := git(*DIFF, "--cached", *FILES)):
        return "The changes are staged.", staged
    born = git("rev-parse", "--quiet", "--verify", "HEAD", check=False).strip()
    diff = git(*DIFF, "HEAD" if born else EMPTY_TREE, *FILES)
    new = git("ls-files", "--others", "--exclude-standard", "-z").split("\0")[:-1]
    diff += "".join(_render_new_file(workspace, name) for name in new if not is_environment_file(Path(name).name))
    return f"The changes are not committed{', nothing is staged' if kind == 'staged' else ''}.", diff


def _render_new_file(workspace: Path, name: str) -> str:
    """Render a file that git does not know yet as git would show it."""
    file = workspace / name
    head = f"diff --git a/{name} b/{name}\nnew file\n"
    if file.is_symlink() or not file.is_file():
        return head
    with file.open("rb") as opened:
        data = opened.read(MAX_NEW_FILE_BYTES)
    if b"\0" in data:
        return f"{head}Binary file\n"
    lines = data.decode(errors="replace").splitlines()
    if len(data) == MAX_NEW_FILE_BYTES:
        lines.append(f"[only the first {MAX_NEW_FILE_BYTES:,} bytes are shown]")
    return "".join(
        [head, f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{len(lines)} @@\n", *(f"+{one}\n" for one in lines)]
    )


def split_diff(diff: str, max_tokens: int, count: Callable[[str], int]) -> Iterator[str]:
    """Split a diff into parts of at most so many tokens: between files if possible, else between hunks, else between
    lines. A part that begins inside a file repeats the file's header."""
    part = ""
    for piece in _split_files(diff, max_tokens, count):
        if part and count(part + piece) > max_tokens:
            yield part
            part = ""
        part += piece
    if part:
        yield part


def _split_files(diff: str, max_tokens: int, count: Callable[[str], int]) -> Iterator[str]:
    for file in re.split(r"^(?=diff --git )", diff, flags=re.MULTILINE):
        if count(file) <= max_tokens:
            yield file
            continue
        head, *hunks = re.split(r"^(?=@@ )", file, flags=re.MULTILINE)
        if not hunks:  # The diff of a merge conflict has no such hunks.
            head, hunks = "", [head]
        yield from (head + piece for piece in _pack(hunks, max_tokens - count(head), count))


def _pack(hunks: Iterable[str], max_tokens: int, count: Callable[[str], int]) -> Iterator[str]:
    """Pack hunks into pieces. One that is too large is split by lines, and a long line is cut."""
    piece, room = "", max(max_tokens, MIN_PART_TOKENS // 2)
    for hunk in hunks:
        header = re.match(r"@@ -(\d+)\S* \+(\d+)", hunk)
        old, new = map(int, header.groups()) if header else (0, 0)
        for line in [hunk] if count(hunk) <= room else hunk.splitlines(keepends=True):
            left_out = f"… [{len(line) - room} characters of this line left out]\n"
            lines = line if count(line) <= room else line[:room] + left_out
            if piece and count(piece) + count(lines) > room:
                yield piece
                piece = f"@@ -{old} +{new} @@\n" if header and not line.startswith("@@") else ""
            piece += lines
            old, new = old + (line[0] in " -"), new + (line[0] in " +")
    if piece:
        yield piece
