"""Files of a project, as discovery finds them (S6)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from ollm.domain.struct import Data

ChangeKind = Literal["add", "change", "unlink"]
EntryType = Literal["file", "directory", "link"]


class FileEntry(Data, frozen=True, gc=False, kw_only=False):
    """A file, directory or symbolic link that no rule hides. `size` and `modified` are there when they were asked for.

    A name that is not UTF-8 is written as Python writes such names (surrogate escapes); `os.fsencode` gives its bytes.
    """

    root: str
    relative_path: str
    type: EntryType = "file"
    size: int | None = None
    modified: datetime | None = None

    @property
    def path(self) -> str:
        """The absolute path. It is put together when asked for: a hundred thousand entries stay small."""
        return f"/{self.relative_path}" if self.root == "/" else f"{self.root}/{self.relative_path}"


class DiscoveryOptions(Data, frozen=True):
    """Options of a search below `root`.

    A glob without a slash is compared with the name at any depth, one with a slash with the path from the root; `{a,b}`
    is an alternative. Unset fields take the configured value. Files of the root itself are depth 0. `within` is the
    project the root is a part of: its rules apply although the walk starts further down.
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
    """One directory of a tree: its files and directories that no rule hides, every other kind of name (links, pipes),
    and the names that rules hide. `path` is from the root, empty for the root itself."""

    path: str
    files: list[str]
    folders: list[str]
    others: list[str]
    hidden: list[str]


class TreeTooLarge(Exception):  # noqa: N818 - not a fault: whoever asked named the limit
    """There are more files than whoever asked wants to know of."""

    def __init__(self, max_files: int) -> None:
        super().__init__(f"more than {max_files:,} files")
