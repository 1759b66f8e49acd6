"""Conversion of a server's refusal to one clear sentence with the next step."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from ollm.domain.errors import (
    ModelError,
    PromptTooLongError,
    RequestRefusedError,
    ToolsUnsupportedError,
    UnknownModelError,
)
from ollm.domain.lazy import compile_late
from ollm.domain.text import suggest_names
from ollm.providers.base import name_models
from ollm.system.http import FullResponse
from ollm.system.terminal_text import flatten_text

REFUSING_STATUSES = (400, 413, 422)
OVERFLOW_STATUSES = (*REFUSING_STATUSES, 200, 500)  # An error inside a stream has status 200.
OVERFLOW_CODE = compile_late(r"context_length|exceed_context|context_window|string_above_max|too_long", re.IGNORECASE)
LENGTH_WORDS = compile_late(r"(?<!_)token|context|prompt|sequence|max_seq|model_len|input length|\blength\b")
EXCESS_WORDS = compile_late(
    r"exceed|greater|longer|larger|too (?:long|large|many|big)|over the|above|at most|limit|maximum|less than|[<>]=?"
    r"|shorten|overflow|only \d+ fit"
)
UNKNOWN_MODEL_PHRASES = ("invalid model name", "server is pinned to", "model_not_found", "unknown model")
MAX_ERROR_CHARACTERS = 300
TEMPLATE_TRACE_END = "\nError: "  # In llama.cpp it stands between a template's trace and the reason.
LITELLM_KEY_REFUSAL = "no connected db"  # Without a database, litellm says this of an unknown key.
NOT_LOADED_TEXT = "model is not loaded"  # The router of llama.cpp says this with --no-models-autoload.
LOG_ACTION = "Check its log, then try again."
KEY_REFUSAL = "rejected the API key", "Set provider.apiKeyEnv or OLLM_API_KEY."
STATUS_MEANINGS = {
    401: KEY_REFUSAL,
    403: KEY_REFUSAL,
    404: ("does not support this request", "Check provider.type and provider.baseUrl."),
    429: ("is rate limiting", "Wait a little and try again."),
    3: ("redirects", "Set provider.baseUrl to the final URL."),
    5: ("failed", LOG_ACTION),
}  # The keys are a status or its first digit.
VLLM_TOOLS_ACTION = (
    "For native tool calls start vLLM with --enable-auto-tool-choice --tool-call-parser NAME"
    " (hermes for Qwen, mistral, llama3_json …)."
)
OTHER_MODEL_ACTION = "For native tool calls choose another model."
TOOL_ACTIONS = (
    (("--enable-auto-tool-choice",), VLLM_TOOLS_ACTION),
    (("--tool-call-parser",), VLLM_TOOLS_ACTION),
    (("tool", "--jinja"), "For native tool calls start llama.cpp with --jinja."),
    (("does not support tools",), OTHER_MODEL_ACTION),
    (("tool calling is not supported",), OTHER_MODEL_ACTION),
)  # Each needs all of its texts in the error.


class ModelLoadingError(ModelError):
    """The server is still loading the model. Status 400: it waits for a request to load it."""


def extract_error_text(value: Any) -> str:
    """Extract the server's error text from any known shape; one line, cut to a readable length."""
    if isinstance(value, dict):
        for key in ("error", "message", "detail", "msg"):
            if value.get(key):
                return extract_error_text(value[key])
        return ""
    if isinstance(value, list):
        return extract_error_text(value[0]) if value else ""
    text = str(value)[: 4 * MAX_ERROR_CHARACTERS].rpartition(TEMPLATE_TRACE_END)[2]
    return flatten_text(text)[:MAX_ERROR_CHARACTERS].rstrip(" .")


def make_server_error(url: str, answer: FullResponse) -> ModelError:
    try:
        body = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = re.sub(r"<[^>]*>", " ", answer.body[:2000].decode("utf-8", "replace"))
    error = make_error_from_text(url, extract_error_text(body), answer.status, body)
    error.status = answer.status
    return error


def lists_no_models(error: ModelError) -> bool:
    """Return True if the status means that the server has no model list, rather than a real refusal."""
    return error.status in (404, 405, 501)


def make_error_from_text(url: str, words: str, status: int, body: Any = None) -> ModelError:
    """Make the error for a server's text. `status` is 200 for an error inside a stream."""
    lowered = words.lower()
    where = f"The model server at {url}"
    told = f": {words}" if words else ""
    if _names_overflow(lowered, status, body):
        return _make_too_long_error(where, words, body)
    if action := next((action for words, action in TOOL_ACTIONS if all(word in lowered for word in words)), ""):
        return ToolsUnsupportedError(f"{where} does not support tools for this model{told}.", action=action)
    if _names_unknown_model(lowered, status):
        return UnknownModelError(
            f"{where} does not have that model{told}.", action="List its models with `ollm models list`."
        )
    if (status == 503 and "loading" in lowered) or (status == 400 and lowered == NOT_LOADED_TEXT):
        return ModelLoadingError(f"{where} is still loading the model.", action="Wait a little and try again.")
    if status == 200:
        return ModelError(f"{where} reported an error in the middle of its answer{told}.", action=LOG_ACTION)
    what, action = _explain_status(status, lowered)
    kind = RequestRefusedError if status in REFUSING_STATUSES else ModelError
    return kind(f"{where} {what} (HTTP {status}){told}.", action=action)


def _names_overflow(lowered: str, status: int, body: Any) -> bool:
    """Return True if a refusal has a known code, or states that a prompt length is exceeded and gives a number or
    mentions the context."""
    error = body.get("error") if isinstance(body, dict) else None
    codes = [found.get(key) for found in (body, error) if isinstance(found, dict) for key in ("code", "type")]
    if any(isinstance(code, str) and OVERFLOW_CODE.search(code) for code in codes):
        return True
    measured = LENGTH_WORDS.search(lowered) and EXCESS_WORDS.search(lowered)
    return bool(status in OVERFLOW_STATUSES and measured and ("context" in lowered or re.search(r"\d{3,}", lowered)))


def _names_unknown_model(lowered: str, status: int) -> bool:
    if any(phrase in lowered for phrase in UNKNOWN_MODEL_PHRASES):
        return True
    return "model" in lowered and (status == 404 or "not found" in lowered or "does not exist" in lowered)


def _explain_status(status: int, lowered: str) -> tuple[str, str]:
    if status == 400 and LITELLM_KEY_REFUSAL in lowered:
        status = 401
    known = STATUS_MEANINGS.get(status) or STATUS_MEANINGS.get(status // 100)
    return known or ("rejected the request", "Run `ollm doctor` to see the connection.")


def _make_too_long_error(where: str, words: str, body: Any) -> PromptTooLongError:
    error = PromptTooLongError(
        f"The prompt does not fit the model's context window: {words}.",
        **read_overflow_numbers(write_out(body) if body else words),
        action="Serve the model with a larger context window, or use /compact.",
    )
    if error.only_answer_too_long:
        error.message = f"{where} has no room for an answer of {error.answer_tokens} tokens: {words}."
    return error


def make_unknown_model_error(url: str, model: str, known: Iterable[str]) -> UnknownModelError:
    """Make an error that names the closest model."""
    names = sorted(known)
    if not names:
        return UnknownModelError(
            f"{url} has no model {model!r}, nor any other.", action="Pull one on that server first."
        )
    if model in names:
        return UnknownModelError(
            f"The server at {url} lists the model {model!r}, but says that it is not there.",
            action="Load it on that server, or choose another model.",
        )
    names = name_models(names)
    near = suggest_names(model, names)
    hint = f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(names[:5])}."
    return UnknownModelError(f"{url} has no model {model!r}.", action=f"{hint} List all with `ollm models list`.")


def as_int(value: Any) -> int:
    """Read a count, or 0 if the value is not one."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15
    return int(value) if is_number and value == int(value) else 0


MAX_SEARCHED_CHARACTERS = 8000
MIN_WINDOW_TOKENS = 512  # A smaller number in a refusal is about something else.
NUMBER = r"(\d[\d,_]{0,12})"

# Each list is tried in order; the first pattern that matches says the number. `low` marks a lower bound.
COMPARED = rf"\({NUMBER} ?[>/] ?(?P<last>\d[\d,_]{{0,12}})\)"  # An example is (9000 > 8192).
WINDOW_PATTERNS = (
    COMPARED,
    rf"\bn_ctx\W{{1,5}}{NUMBER}",
    rf"max_(?:model|seq|total|context)_(?:len\w*|tokens)\W{{1,4}}(?:is |of )?{NUMBER}",
    rf"{NUMBER} tokens? (?:>|exceeds?) (?:the )?(?P<last>\d[\d,_]{{0,12}})",
    rf"(?:context|model|sequence)[ _-](?:size|length|window|limit|len)[^\d>]{{0,40}}?{NUMBER}",
    rf"{NUMBER}(?:[ -]tokens?)? (?:maximum |max )?context[ _-](?:size|length|window|limit)",
    rf"must (?:be|have) (?:<=?|less than|at most|fewer than|no more than) {NUMBER}",
    rf"(?:maximum|limit)(?: input| prompt)?(?: length)?(?: is| of|:) {NUMBER}(?: tokens)?",
)
PROMPT_PATTERNS = (
    COMPARED.replace("?P<last>", ""),
    rf"\bn_prompt_tokens\W{{1,5}}{NUMBER}",
    rf"(?P<low>at least )?{NUMBER} (?:tokens? )?(?:in|from) the (?:input |prompt )?(?:messages|prompt|input)",
    rf"(?:contains?|has|have|with) (?P<low>at least )?{NUMBER} (?:input|prompt|message)?[ _]?tokens",
    rf"(?:request|inputs?|prompt|messages)['`]? \((?:total )?(?:length )?(?P<low>at least )?{NUMBER}(?: tokens)?\)",
    rf"(?:resulted in|(?:request|input|prompt)(?: is)? too (?:long|large):|given:) (?P<low>at least )?{NUMBER}",
    rf"keep the first {NUMBER} tokens",
    rf"(?<![=\d]){NUMBER} tokens? (?:>|exceeds?)",
)
ANSWER_PATTERNS = (
    rf"requested {NUMBER} (?:output|completion|new) tokens",
    rf"{NUMBER} (?:tokens? )?(?:in|for) the completion",
    rf"max_(?:completion_|new_|output_)?tokens\W{{1,3}}(?:is )?too large: {NUMBER}",
    rf"max_(?:completion_|new_|output_)?tokens\W{{1,3}}(?:is |of )?{NUMBER}",
    rf"{NUMBER} [`'\"]?max_(?:completion_|new_|output_)?tokens",
)


def read_overflow_numbers(text: str) -> dict[str, Any]:
    """Read the numbers from the text of the error, or from the whole body as text."""
    searched = text[:MAX_SEARCHED_CHARACTERS]
    if len(searched) < len(text):
        searched = searched.rstrip("0123456789,_")  # A number that was cut in two says nothing.
    window, _ = _find_number(WINDOW_PATTERNS, searched)
    window = window if window >= MIN_WINDOW_TOKENS else 0
    prompt, at_least = _find_number(PROMPT_PATTERNS, searched)
    answer, _ = _find_number(ANSWER_PATTERNS, searched)
    if not answer and not (window and prompt):
        window, prompt = _compare_numbers(searched, window, prompt)
    asked = answer if answer != window else 0
    at_least = at_least and prompt > 0
    return {"window": window, "prompt_tokens": prompt, "prompt_at_least": at_least, "answer_tokens": asked}


def _compare_numbers(text: str, window: int, prompt: int) -> tuple[int, int]:
    """Take the larger of two numbers as the prompt and the smaller as the window."""
    digits = re.findall(rf"(?<![\w.-]){NUMBER}(?![\w-]|\.\d)", text)
    found = sorted({number for each in digits if (number := int(re.sub(r"[,_]", "", each))) >= MIN_WINDOW_TOKENS})
    if len(found) == 2 and window in (0, *found) and prompt in (0, found[1]):
        return found[0], found[1]
    return window, prompt


def _find_number(patterns: tuple[str, ...], text: str) -> tuple[int, bool]:
    for pattern in patterns:
        if found := re.search(pattern, text, re.IGNORECASE):
            named = found.groupdict()
            digits = named.get("last") or next(g for g in found.groups() if g and g[0].isdigit())
            return int(re.sub(r"[,_]", "", digits)), bool(named.get("low"))
    return 0, False


def write_out(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8", "replace")
