"""`ollm chat` and `ollm -p`: the same conversation, with a screen or without one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ollm.cli.commands import complete_late
from ollm.cli.start import PICK_SESSION, ChatArguments, Question
from ollm.domain.errors import ModelError, NoServerError, UsageError, WorkspaceBusyError

if TYPE_CHECKING:
    from ollm.cli.answer_schema import AnswerSchema
    from ollm.cli.best_of import BestOf


class ChatCommand(click.Command):
    """Takes a leading `-p` by its long name: for a short one click loads difflib, to look for similar long names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["-p"] and [word.partition("=")[0] for word in args[1:2]] == ["--review"]:
            args = args[1:]  # A review needs no prompt.
        return super().parse_args(ctx, ["--prompt", *args[1:]] if args[:1] == ["-p"] else args)


@click.command(cls=ChatCommand)
@click.argument("text", metavar="[TEXT]", nargs=-1)
@click.option("-p", "--prompt", metavar="TEXT|-", help="Answer one prompt and exit; - reads stdin.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(("text", "json", "stream-json")),
    default="text",
    help="Output format for -p.",
)
@click.option("--schema", type=click.Path(path_type=Path), help="JSON schema that the answer of -p must fit.")
@click.option(
    "--review", is_flag=False, flag_value="", metavar="[RANGE]", help="With -p: review uncommitted changes, or a range."
)
@click.option("--best-of", type=click.IntRange(1, 64), metavar="N", help="With -p: try N times, apply the best diff.")
@click.option(
    "--check", metavar="COMMAND", help="With -p: command that must pass; the model gets its output till then."
)
@click.option("--check-rounds", type=click.IntRange(0, 20), metavar="N", help="Rounds that --check gives (default 3).")
@click.option("--models", metavar="A,B", help="Models that the attempts take in turn.")
@click.option("--new", is_flag=True, help="Start a new session.")
@click.option(
    "-r",
    "--resume",
    "--session",
    "session",
    is_flag=False,
    flag_value=PICK_SESSION,
    metavar="[ID]",
    help="Resume this session (a prefix of 4 characters is enough); without ID choose one.",
    shell_complete=complete_late("complete_session"),
)
@click.option("-c", "--continue", "newest", is_flag=True, help="Resume the newest session in this workspace.")
@click.option("--full", is_flag=True, help="Resume with as much of the full history as fits.")
@click.option("--force", is_flag=True, help="Take over from the running instance.")
@click.option("--beside", is_flag=True, help="Open beside a running instance.")
@click.option("-w", "--worktree", metavar="NAME", help="Work in a git worktree of this name; create it if needed.")
@click.option("--workspace", type=click.Path(path_type=Path), help="Project directory (default: current directory).")
@click.option("--provider", metavar="TYPE", help="Model server type.")
@click.option("--base-url", metavar="URL", help="Address of the model server.")
@click.option("-m", "--model", metavar="NAME", help="Model to use.", shell_complete=complete_late("complete_model"))
@click.option("--mode", type=click.Choice(("assistant", "plan", "code", "debug")), help="Agent mode.")
@click.option(
    "--approval",
    type=click.Choice(("read-only", "ask", "accept-edits", "yolo")),
    help="What runs without asking.",
)
@click.option(
    "--allow", "grants", multiple=True, metavar="GRANT", help="Allow a tool or one command: 'shell:npm run test'."
)
@click.option("--yes", is_flag=True, help="Approve everything except protected files.")
@click.option("--daemon", is_flag=True, help="Use the daemon; start it if needed.")
@click.option("--detach", is_flag=True, help="With -p: start in the daemon, print the session's id and leave.")
def chat(**options: Any) -> int:
    """Chat about the current project.

    TEXT is your first message. With -p TEXT ollm answers once and exits; piped input is attached to TEXT.
    """
    return run_chat({**options, "bare": click.get_current_context().meta.get("bare", False)})


def run_chat(options: Mapping[str, Any]) -> int:
    start = ChatArguments.from_options(options)
    if start.session or options.get("worktree") is not None:
        from ollm.cli.worktree import choose_folder

        start = choose_folder(start, options.get("worktree"))
    prompt, reviewed = _find_prompt(start, options), options.get("review") is not None
    if prompt is not None and start.daemon:
        raise UsageError("--daemon needs the interactive chat.", action="Drop it when you use -p.")
    schema, best = _read_one_shot_options(options, one_shot=prompt is not None)
    if options.get("check") and not best:
        rounds = options["check_rounds"]
        start = msgspec.structs.replace(start, check=(options["check"], 3 if rounds is None else rounds))
    asked = None if prompt is None else Question(text=prompt) if reviewed else read_question(prompt)
    if options.get("detach"):
        from ollm.cli.oneshot import start_detached

        return start_detached(start, asked, alone=not (schema or best or start.check))
    try:
        return _run(start, asked, options["output"], schema, best)
    except WorkspaceBusyError as error:
        error.action = "Close it there, open beside it with --beside, or take over with --force."
        raise
    except (NoServerError, ModelError) as error:
        from ollm.cli.first_run import offer_model

        if flags := offer_model(error, start.flags):
            start = msgspec.structs.replace(start, flags=flags, text=error.unsent or start.text)
            return _run(start, asked, options["output"], schema, best)
        unsent = asked or Question(text=error.unsent)
        if unsent.text.strip() and not unsent.text.startswith("/"):
            from ollm.cli.oneshot import keep_question

            keep_question(start, unsent, error)
        raise


def _find_prompt(start: ChatArguments, options: Mapping[str, Any]) -> str | None:
    prompt: str | None = options["prompt"]
    if prompt and prompt[0] == "-" and any(prompt.partition("=")[0] in one.opts for one in chat.params):
        raise UsageError(
            f"-p needs a prompt, and {prompt} is an option.",
            action=f"Put the prompt after -p: `ollm {prompt} -p 'do it'`.",
        )
    if prompt is not None and start.text:
        raise UsageError(
            f"-p already has a prompt; {start.text[:40]!r} is a second one.",
            action="Quote the whole prompt, as in `ollm -p 'do it'`.",
        )
    reviewed: str | None = options.get("review")
    if reviewed is not None:
        return f"/review {f'{reviewed} -- ' if reviewed else ''}{prompt or start.text}".strip()
    if prompt is not None or (sys.stdin.isatty() and sys.stdout.isatty()):
        return prompt
    if start.pick and not start.text:
        action = "Use `ollm -p TEXT -c` or `ollm -p TEXT -r ID`."
        raise UsageError("Choosing a session needs a terminal.", action=action)
    return start.text or "-"


def _read_one_shot_options(options: Mapping[str, Any], *, one_shot: bool) -> tuple[AnswerSchema | None, BestOf | None]:
    ours = ("schema", "best_of", "check", "check_rounds", "models")
    given = [name for name in ours if options.get(name) is not None]
    if not given:
        return None, None
    if not one_shot:
        raise UsageError(f"--{given[0].replace('_', '-')} needs -p.", action="Use `ollm -p TEXT`.")
    schema, best = None, None
    if "schema" in given:
        from ollm.cli.answer_schema import read_schema

        schema = read_schema(options["schema"])
    if given != ["schema"]:
        from ollm.cli.best_of import BestOf

        best = BestOf.from_options(options)
    return schema, best


def _run(
    start: ChatArguments, asked: Question | None, output: str, schema: AnswerSchema | None, best: BestOf | None
) -> int:
    if asked is None:
        from ollm.cli.terminal import run_terminal_chat

        return run_terminal_chat(start)
    if best:
        from ollm.cli.best_of import run_best_of

        return run_best_of(start, asked, output, best)
    from ollm.cli.oneshot import ask_once

    return ask_once(start, asked, output, schema)


def read_question(prompt: str) -> Question:
    """Read what is piped to the prompt, which it replaces if that is empty or `-`."""
    piped = "" if prompt != "-" and (sys.stdin is None or sys.stdin.isatty()) else read_stdin()
    if prompt.strip() and prompt != "-":
        return Question(text=prompt, piped=piped)
    if not piped.strip():
        raise UsageError("The prompt is empty.", action="Give a prompt: ollm -p 'explain this repository'.")
    return Question(text=piped, typed=False)


def read_stdin() -> str:
    """Read all of standard input as text. Raises UsageError if it is not text."""
    data = sys.stdin.buffer.read() if sys.stdin else b""
    with suppress(UnicodeDecodeError):
        if b"\0" not in data:
            return data.decode()
    from ollm.tools.files.file_text import describe_kind, detect_encoding

    if (encoding := detect_encoding(data)) is None:
        raise UsageError(
            f"Standard input is not text: {describe_kind(data)}, {len(data):,} bytes.",
            action="Save it to a file and name that in the prompt, as in `ollm -p 'What is in @picture.png?'`.",
        )
    return data.removeprefix(encoding.mark).decode(encoding.name, errors="replace")
