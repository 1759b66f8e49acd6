"""Files of a project, as discovery finds them (S6)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from ollm.domain.struct import Data

ChangeKind = Literal["add", "change", "unlink"]
EntryType = Literal["file", "directory", "link"]


class FileEntry(Data, frozen=True, gc=False, kw_only=False):
    """A file, directory or symbolic link that no rule hides. `size` and `modified` are set only on request.

    A name that is not UTF-8 contains surrogate escapes, as in Python; `os.fsencode` returns its bytes.
    """

    root: str
    relative_path: str
    type: EntryType = "file"
    size: int | None = None
    modified: datetime | None = None

    @property
    def path(self) -> str:
        """The absolute path, built on demand so that a hundred thousand entries stay small."""
        return f"/{self.relative_path}" if self.root == "/" else f"{self.root}/{self.relative_path}"


class DiscoveryOptions(Data, frozen=True):
    """Options of a search below `root`.

    A glob without a slash matches the name at any depth; one with a slash matches the path from the root. `{a,b}`
    is an alternative. Unset fields take the configured value. Files directly in the root have depth 0. `within` is the
    project that contains the root: its rules apply even though the walk starts further down.
    """

    root: str
    within: str | None = None
    max_depth: int | None = None
    include_patterns: tuple[str, ...] = ()
    exclude_patterns: tuple[str, ...] = ()
    follow_symlinks: bool | None = None
    hidden: bool = True
    directories: bool = False
    stat: bool = False


class DirectoryContent(NamedTuple):
    """One directory of a tree: visible files and directories, and all other kinds of visible names (links, pipes), in
    order. `names` are all names, including hidden ones. `prefix` is its path from the root, empty or ending with a
    slash."""

    prefix: str
    files: list[str]
    folders: list[str]
    others: list[str]
    names: list[str]

    @property
    def path(self) -> str:
        return self.prefix[:-1]

    @property
    def hidden(self) -> list[str]:
        """The names that rules hide."""
        shown = len(self.files) + len(self.folders) + len(self.others)
        return [] if shown == len(self.names) else sorted({*self.names}.difference(*self[1:4]))


class TreeTooLarge(Exception):  # noqa: N818 - not a fault: whoever asked named the limit
    """The tree has more files than the caller's limit."""

    def __init__(self, max_files: int) -> None:
        super().__init__(f"more than {max_files:,} files")
