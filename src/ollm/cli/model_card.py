"""A model's card and its trials as people read them."""

from __future__ import annotations

from collections.abc import Iterator

from ollm.app.models import probe_model
from ollm.app.process import ProcessScope
from ollm.cli.options import warn
from ollm.cli.text_printer import WaitLine
from ollm.domain.clock import format_age
from ollm.domain.model_facts import CARD_FIELDS, ModelFacts, Source
from ollm.runtime.model.probe import PART_NAMES, ModelCard, Trial

SOURCES: dict[Source, str] = {
    "server": "reported by the server",
    "error": "from the server's error",
    "template": "seen in the chat template",
    "use": "measured in use",
    "probe": "probed",
    "card": "from an imported card",
}
MARKS = {True: "ok", False: "no", None: "?"}


async def run_trials(process: ProcessScope, name: str | None, *, faults_only: bool = False) -> ModelCard:
    """Probe a model. Each trial is printed on stderr, and on a terminal the one that runs."""
    with WaitLine("testing") as line:

        def announce(trial: str) -> None:
            line.doing = f"testing: {trial}"

        def report(trial: Trial) -> None:
            line.clear()
            warn(f"{trial.name}: {trial.told}")

        return await probe_model(process, name, report, announce, faults_only=faults_only)


def describe_faults(trials: tuple[Trial, ...]) -> Iterator[str]:
    """Describe each fault with its remedy and workaround, for a person who runs the server."""
    for remedy in dict.fromkeys(trial.remedy for trial in trials if trial.fault):
        faults = [trial for trial in trials if trial.fault and trial.remedy == remedy]
        for trial in faults:
            yield f"{trial.name}: {trial.told}"
        if remedy:
            yield f"  to fix it: {remedy}"
        workarounds = dict.fromkeys(trial.workaround for trial in faults if trial.workaround)
        yield f"  until then: {', '.join(workarounds) or 'no workaround'}"


def describe_calls(facts: ModelFacts) -> str:
    known = {
        "unknown": "unknown until first use",
        "native": "native",
        "blocks": "in blocks: fenced commands and files",
        "text": "written as text, which ollm parses",
        "none": "none: the model does not call tools",
    }
    results = "; results are sent as user messages" if facts.result_form == "user" else ""
    return known[facts.call_form] + results


def describe_speed(facts: ModelFacts) -> str:
    if facts.prefill_per_second is None and facts.decode_per_second is None:
        return "not measured; run `ollm doctor --measure`"
    read, write = facts.prefill_per_second, facts.decode_per_second
    return f"prompt: {read if read is not None else '?'} tok/s, output: {write if write is not None else '?'} tok/s"


def describe_thinking(facts: ModelFacts) -> str:
    known = {
        None: "unknown",
        "none": "none",
        "separate": "sent separately",
        "tagged": "part of the answer, separated by ollm",
        "opened": "part of the answer, separated by ollm",
    }
    off = {None: "", True: "; `thinking: off` stops it", False: "; `thinking: off` has no effect"}
    shown = {
        None: "",
        "none": "; not shown to the model again",
        "turn": "; shown to the model again until the turn ends",
        "session": "; shown to the model again",
    }
    back = shown[facts.shown_thinking] if facts.takes_thinking else "; the server refuses it back, so none is sent"
    return known[facts.thinking] + off[facts.thinking_off] + back


def describe_tools(facts: ModelFacts) -> str:
    most = f"at most {facts.max_tools} at a time" if facts.max_tools else "no limit found"
    return most if facts.takes_tools else "the server takes none, so ollm lists them in the prompt"


def describe_card(facts: ModelFacts) -> Iterator[tuple[str, str]]:
    """Describe each line of the card, with the source and the date of what it says."""
    source = f"imported {facts.imported}, not measured here" if facts.imported else "learnt while it was used"
    yield "measured", facts.probed or source
    for name, text in _describe_facts(facts).items():
        learnt = [facts.learnt[field] for field in CARD_FIELDS[name] if field in facts.learnt.keys() - {"server_mark"}]
        newest = max(learnt, key=lambda found: found.at, default=None)
        yield name, f"{text} ({SOURCES[newest.source]}, {format_age(newest.at)})" if newest else text


def _describe_facts(facts: ModelFacts) -> dict[str, str]:
    window = facts.served_window or facts.window
    cache = {None: "unknown", True: "prompts are reused", False: "every prompt is read anew"}
    return {
        "server": facts.server or "unknown",
        "calls": describe_calls(facts),
        "tools": describe_tools(facts),
        "thinking": describe_thinking(facts),
        "speed": describe_speed(facts),
        "counting": f"{facts.token_factor:.2f} × the estimate" if facts.token_samples else "unknown",
        "window": f"{window:,} tokens" if window else "as the server says",
        "cache": cache[facts.reuses_prefix],
        "faults": ", ".join(PART_NAMES.get(fault, fault) for fault in facts.faults) or "none found",
    }
