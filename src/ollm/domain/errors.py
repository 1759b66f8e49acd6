"""Errors, by audience: `ToolFailure` is for the model, every other `OllmError` is for the user."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NO_SERVER = 3
    MODEL_FAILED = 4
    DENIED = 5
    LOOP = 6
    SCHEMA = 7
    TIMED_OUT = 124
    INTERRUPTED = 130


class OllmError(Exception):
    """An error to show to the user: what happened, where, and what to do next (`action`)."""

    exit_code: ExitCode = ExitCode.FAILED
    session_id: str = ""  # This session keeps the user's message.
    unsent: str = ""  # Messages of a chat that failed to open.

    def __init__(self, message: str, *, action: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.action = action

    def __str__(self) -> str:
        return f"{self.message} {self.action}".strip() if self.action else self.message


class UsageError(OllmError):
    """The command was called incorrectly, or the configuration is unusable."""

    exit_code = ExitCode.USAGE


class NotFoundError(OllmError):
    """The named session, snapshot, model or file does not exist."""


class NoServerError(OllmError):
    """No model server could be reached."""

    exit_code = ExitCode.NO_SERVER


class ModelError(OllmError):
    """The server answered, but with an error, or stopped early."""

    exit_code = ExitCode.MODEL_FAILED
    status: int = 0  # The HTTP status of a refusal.


class ModelTimeoutError(ModelError):
    """The server accepted the request but sent nothing for too long."""

    exit_code = ExitCode.TIMED_OUT


class UnknownModelError(ModelError):
    """The server has no model of that name; the message suggests the closest name."""


class ToolsUnsupportedError(ModelError):
    """The server rejects tools for this model, so calls must be requested as text. `action`: how to enable tools."""


class RequestRefusedError(ModelError):
    """The server rejected the request with an unrecognized message."""


class PromptTooLongError(ModelError):
    """The request does not fit the model's context window. Counts the server did not report are 0.

    `prompt_at_least`: `prompt_tokens` is a lower bound. `answer_tokens`: the answer length that was requested.
    """

    def __init__(
        self,
        message: str,
        *,
        prompt_tokens: int = 0,
        prompt_at_least: bool = False,
        answer_tokens: int = 0,
        window: int = 0,
        action: str = "",
    ) -> None:
        super().__init__(message, action=action)
        self.prompt_tokens = prompt_tokens
        self.prompt_at_least = prompt_at_least
        self.answer_tokens = answer_tokens
        self.window = window

    @property
    def only_answer_too_long(self) -> bool:
        """True if the prompt fits and the same request with a smaller answer limit would succeed."""
        return self.answer_tokens > 0 and (not self.window or self.prompt_tokens < self.window)


class TurnFailedError(OllmError):
    """A turn ended without an answer; `reason` is that of its `TurnFinished`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message or f"The turn ended: {reason}.")
        self.reason = reason


class DeniedError(OllmError):
    """Denied by policy or by the person."""

    exit_code = ExitCode.DENIED


class BusyError(OllmError):
    """The resource is in use: a session being written, a workspace in use, or a running turn."""


class WorkspaceBusyError(BusyError):
    """Another process has the workspace open. `ConversationOptions` opens beside it or takes over."""


class StorageError(OllmError):
    """A file could not be read or written; the message names it."""


def suggest_storage_fix(error: BaseException | None) -> str:
    """Suggest a fix for a failed write, based on the system's error."""
    import errno

    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.EMFILE, errno.ENFILE):
        return "Close other programs or raise the limit of open files (`ulimit -n`)"
    if number in (errno.ENOSPC, errno.EDQUOT):
        return "Free disk space"
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "Fix the permissions of the directory and its files"
    return "Check the disk and the permissions of the directory and its files"


class DamagedError(StorageError):
    """A file was read but is corrupt; the message states how much of it is usable."""


class UnsavedError(StorageError):
    """Session data is in memory only. The message states how much and why, the action where it can be saved."""


class ToolFailure(OllmError):  # noqa: N818 - an outcome the model reads, not a fault of the program
    """A tool failed; the model reads why and may try again. docs/tools.md lists the values of `kind`."""

    def __init__(self, kind: str, message: str, *, action: str = "") -> None:
        super().__init__(message, action=action)
        self.kind = kind


class StartError(OllmError):
    """The command failed to start. `where` is `cwd`, `program`, `start` or `sandbox`."""

    def __init__(self, message: str, where: str) -> None:
        super().__init__(message)
        self.where = where
