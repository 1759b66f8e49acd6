"""Errors, named by who must hear them: `ToolFailure` the model, every other `OllmError` the user."""

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
    TIMED_OUT = 124
    INTERRUPTED = 130


class OllmError(Exception):
    """Something the user must hear: what happened, where, and what to do next (`action`)."""

    exit_code: ExitCode = ExitCode.FAILED
    session_id: str = ""  # the session that keeps what was asked

    def __init__(self, message: str, *, action: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.action = action

    def __str__(self) -> str:
        return f"{self.message} {self.action}".strip() if self.action else self.message


class UsageError(OllmError):
    """The command was called wrongly, or the configuration cannot be used."""

    exit_code = ExitCode.USAGE


class NotFoundError(OllmError):
    """A session, snapshot, model or file that was named is not there."""


class NoServerError(OllmError):
    """No model server could be reached."""

    exit_code = ExitCode.NO_SERVER


class ModelError(OllmError):
    """The server answered, but with an error, or stopped early."""

    exit_code = ExitCode.MODEL_FAILED
    status: int = 0  # the HTTP status of a refusal


class ModelTimeoutError(ModelError):
    """The server was reached and then said nothing for too long."""

    exit_code = ExitCode.TIMED_OUT


class UnknownModelError(ModelError):
    """The server has no model of that name; the message names the nearest it has."""


class ToolsUnsupportedError(ModelError):
    """The server takes no tools for this model; calls must be asked for as text. `action`: how it would."""


class RequestRefusedError(ModelError):
    """The server refused the request as it was, in words that say nothing known."""


class PromptTooLongError(ModelError):
    """The request does not fit into the window the server gives the model; 0 where it did not say the number.

    `prompt_at_least`: the prompt has that many tokens or more. `answer_tokens`: the room that was asked for the answer.
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
        """The prompt fits: the same request with less room for the answer would be taken."""
        return self.answer_tokens > 0 and (not self.window or self.prompt_tokens < self.window)


class TurnFailedError(OllmError):
    """A turn ended without an answer; `reason` is that of its `TurnFinished`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message or f"The turn ended: {reason}.")
        self.reason = reason


class DeniedError(OllmError):
    """Policy, or the person asked, said no."""

    exit_code = ExitCode.DENIED


class BusyError(OllmError):
    """Someone else is at it: a session being written, a workspace in use, a turn running."""


class StorageError(OllmError):
    """A file could not be read or written; the message names it."""


def suggest_storage_fix(error: BaseException | None) -> str:
    """Tell what to do about a failed write, by the system's reason."""
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
    """A file was read but is broken; the message says how much of it can be used."""


class UnsavedError(StorageError):
    """Something that was said is in memory only; the message says how much and why, the action where it can go."""


class ToolFailure(OllmError):  # noqa: N818 - an outcome the model reads, not a fault of the program
    """A tool could not do its work; the model reads why and may try again. docs/tools.md lists the values of `kind`."""

    def __init__(self, kind: str, message: str, *, action: str = "") -> None:
        super().__init__(message, action=action)
        self.kind = kind


class StartError(OllmError):
    """The command could not be started. `where` is `cwd`, `program`, `start` or `sandbox`."""

    def __init__(self, message: str, where: str) -> None:
        super().__init__(message)
        self.where = where
