"""Three tiny tasks in two forms of calls: which of them a model does its work in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

from msgspec.structs import replace

from ollm.domain.messages import PromptMessage
from ollm.domain.model_facts import CallForm, ModelFacts
from ollm.domain.struct import Data
from ollm.providers.base import CallPiece, ChatRequest, Provider
from ollm.providers.text_calls.block_edits import read_change
from ollm.runtime.model.block_answer import FILE_BLOCK, BlockAnswer
from ollm.runtime.model.tool_call_fallback import ToolCallFallback

MAX_TRIAL_TOKENS = 160
CONF = 'DEBUG = False\nNAME = "x"\nLIMIT = 12\n'


class TinyTask(Data, frozen=True):
    """`is_right` looks at the first step."""

    asked: str
    is_right: Callable[[CallPiece], bool]


def _is_search(call: CallPiece) -> bool:
    return call.name in ("grep", "shell") and "PORT" in str(call.arguments)


def _is_change(call: CallPiece) -> bool:
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    if arguments.get("path") != "conf.py":
        return False
    if call.name != FILE_BLOCK:
        return call.name in ("edit_file", "write_file") and "LIMIT = 20" in str(arguments).replace(
            "LIMIT=20", "LIMIT = 20"
        )
    change = read_change("conf.py", str(arguments["content"]), CONF, shown_whole=True)
    after = change.content if change.content is not None else " ".join(new for _, new in change.edits)
    return "LIMIT = 20" in after


def _deletes(call: CallPiece) -> bool:
    return call.name == "shell" and "rm" in str(call.arguments) and "old.txt" in str(call.arguments)


TASKS = (
    TinyTask(asked="Which file contains PORT?\n\nFiles here: app.py, conf.py", is_right=_is_search),
    TinyTask(
        asked=f"Change LIMIT in conf.py to 20.\n\nFiles here: app.py, conf.py\n\nconf.py:\n```\n{CONF}```",
        is_right=_is_change,
    ),
    TinyTask(asked="Delete the file old.txt.\n\nFiles here: app.py, conf.py, old.txt", is_right=_deletes),
)


async def count_right_steps(provider: Provider, request: ChatRequest, facts: ModelFacts, form: CallForm) -> int:
    """How many of the tiny tasks the model begins rightly in this form."""
    right = 0
    for task in TASKS:
        asked = (*request.messages, PromptMessage(role="user", content=task.asked))
        sent = replace(request, messages=asked, max_tokens=MAX_TRIAL_TOKENS, temperature=0)
        known = replace(facts, call_form=form)
        blocks = form == "blocks"
        answer = BlockAnswer(provider, sent, known, begins=False) if blocks else ToolCallFallback(provider, sent, known)
        async with aclosing(answer.stream_answer()) as pieces:
            calls = [piece async for piece in pieces if isinstance(piece, CallPiece)]
        right += bool(calls) and task.is_right(calls[0])
    return right
