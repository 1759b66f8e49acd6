"""Taking whole trees within the limits of the settings; where they are passed, none are taken from then on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ollm.config.settings import CheckpointSettings
from ollm.domain.errors import UsageError
from ollm.domain.files import DirectoryContent, TreeTooLarge
from ollm.services.file_checkpoints.capture import CapturedTree, TooManyBytes, WorkspaceCapture
from ollm.services.file_checkpoints.cleanup import collect_garbage, drop_to_size
from ollm.services.file_checkpoints.place import CheckpointPlace, find_reason_off
from ollm.store.file_objects import FileObjects

INDEX_SHARE = 100  # the index is rewritten when one of so many files is not in it
ScanTree = Callable[[str, int], Sequence[DirectoryContent]]


class CheckpointsOffError(UsageError):
    """No checkpoints are taken here; the message says why."""


class TreeTaker:
    """`off` says why none are taken here; nothing where they are."""

    def __init__(
        self, place: CheckpointPlace, settings: CheckpointSettings, scan: ScanTree, objects: FileObjects
    ) -> None:
        self.off = find_reason_off(place, settings)
        self._place = place
        self._settings = settings
        self._scan = scan
        self._objects = objects
        self._capture = self._make_capture(objects)
        self._unsaved_reads = 0

    def take(self, needed: bytes | None = None) -> CapturedTree:
        """The tree as it is, saved. What is `needed` besides is not thrown away to make room for it."""
        tree = self._capture_tree(self._capture)
        self._unsaved_reads += tree.read
        limit = self._settings.max_total
        if self._objects.save_growth().bytes > limit:
            used = [tree.digest, *([needed] if needed else [])]
            if drop_to_size(self._objects, limit, used).bytes > limit and needed is None:
                raise self._turn_off_for_size()
        return tree

    def view_tree(self, objects: FileObjects) -> CapturedTree:
        """The tree as it is, kept where these objects are."""
        return self._capture_tree(self._make_capture(objects))

    def save_index(self, files: int) -> None:
        """Remember the files for the next process, where many are not remembered yet."""
        if self._unsaved_reads > files // INDEX_SHARE or not self._objects.index.exists():
            self._capture.save_index()
            self._unsaved_reads = 0

    def _make_capture(self, objects: FileObjects) -> WorkspaceCapture:
        settings, root = self._settings, self._place.root
        return WorkspaceCapture(
            root,
            objects,
            lambda: self._scan(str(root), settings.max_files),
            max_file_bytes=settings.max_file_bytes,
            max_total_bytes=settings.max_total,
            excluded=self._place.excluded,
        )

    def _capture_tree(self, capture: WorkspaceCapture) -> CapturedTree:
        try:
            return capture.take()
        except TreeTooLarge as error:
            self.off = f"Checkpoints are off: this workspace has {error} (checkpoints.maxFiles)."
            raise CheckpointsOffError(self.off) from error
        except TooManyBytes as error:
            raise self._turn_off_for_size() from error

    def _turn_off_for_size(self) -> CheckpointsOffError:
        collect_garbage(self._objects)
        self.off = "Checkpoints are off: the files here take more than checkpoints.maxTotal."
        return CheckpointsOffError(self.off)
