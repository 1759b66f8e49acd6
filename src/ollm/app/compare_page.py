"""A comparison as HTML that is read without scripts: a part of the web pages, or a file with its sessions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from ollm.domain.errors import OllmError
from ollm.domain.text import format_count, format_seconds
from ollm.services.compare import (
    FIGURES,
    CompareRun,
    Comparison,
    count_missing,
    describe_difference,
    load_all_newest,
    summarize,
)
from ollm.services.session_export.html import (
    COMPARISON_PAGE,
    COMPARISON_STYLE,
    render_message_as_html,
    render_page_head,
)
from ollm.services.session_export.markdown import ExportSource, format_time
from ollm.system.terminal_text import escape_controls

COLUMNS = ("seconds", "reading", "writing", "in tools", "tokens read", "written", "steps", "failed calls", "joules")
REASONS = {"answered": "the check fails", "timeout": "time limit", "check-timeout": "the check met the time limit"}
MAX_OUTPUT_CHARS = 4_000  # A page has the sessions of all runs.
OpenSession = Callable[[str], AbstractContextManager[ExportSource]]


def render_newest(home: Path) -> Iterator[str]:
    """Render the newest comparison of each workspace for the web pages, which open its sessions."""
    for comparison in load_all_newest(home):
        yield render_comparison(comparison, lambda run: f' data-session="{run["sessionId"]}"')


def render_file(comparison: Comparison, open_session: OpenSession) -> Iterator[str]:
    """Render a page of its own. A cell leads to its session further down."""
    sections = {}
    for number, run in enumerate(comparison[1]):
        with suppress(OllmError), open_session(run["sessionId"]) as source:  # It may have been deleted.
            sections[run["sessionId"]] = f"run-{number}", "".join(_render_run(f"run-{number}", run, source))

    def link(run: CompareRun) -> str:
        return f' href="#{sections[run["sessionId"]][0]}"' if run["sessionId"] in sections else ""

    yield render_page_head("Models compared", COMPARISON_STYLE)
    yield f'<main id="compared">\n<h1>Models compared</h1>\n{render_comparison(comparison, link)}'
    yield from (escape_controls(text) for _, text in sections.values())
    yield "</main>\n</body>\n</html>\n"


def _render_run(anchor: str, run: CompareRun, source: ExportSource) -> Iterator[str]:
    yield f'<section class="run transcript" id="{anchor}">\n<p><a href="#compared">Back to the comparison</a></p>\n'
    yield f"<h2>{escape(run['task'])} with {escape(run['model'])}, {escape(_describe_run(run))}</h2>\n"
    yield f'<p class="meta">{escape(run["sessionId"])}</p>\n'
    for message in source.iter_messages():
        if message.role != "tool" or message.text:
            parts = render_message_as_html(message, source.find_call, MAX_OUTPUT_CHARS)
            yield from (part.replace(' id="m', f' id="{anchor}-m', 1) for part in parts)
    yield "</section>\n"


def _describe_run(run: CompareRun) -> str:
    reason = "" if run["passed"] else f" ({REASONS.get(run['reason'], run['reason'])})"
    dropped = f"; changes to {', '.join(run['dropped'])} do not count" if run["dropped"] else ""
    return f"round {run['number']}: {'passed' if run['passed'] else 'not passed'}{reason}{dropped}"


def render_comparison(comparison: Comparison, link: Callable[[CompareRun], str]) -> str:
    """Render a comparison. `link` returns the attribute that opens the session of a run."""
    (plan, runs), found = comparison, summarize(comparison)
    models, left = found["models"], count_missing(comparison)
    letters = {one["model"]: chr(ord("A") + count) for count, one in enumerate(models)}
    shown = [
        (key, label) for key, label in zip(FIGURES, COLUMNS, strict=True) if any(key in m["figures"] for m in models)
    ]
    facts = {
        "Tasks": f"{len(plan['tasks'])}, {format_count(plan['times'], 'round')}",
        "Settings": ", ".join(f"{key}={value}" for key, value in plan["settings"].items()) or "the models' own",
        "Time limit": plan["limit"] or "of each task",
        "Network": "for the tasks that ask for it" if plan["network"] else "none",
        "Hardware": plan["about"]["hardware"],
        "Version": plan["about"]["version"],
        "Started": format_time(plan["about"]["started"]),
    }
    grid = (
        "".join((f"<tr><th>{escape(task)}</th>", *(_render_cell(runs, task, one, link) for one in letters), "</tr>"))
        for task in plan["tasks"]
    )
    tasks = (
        f"<details><summary>{escape(task)}</summary><pre>{escape(one.request)}</pre>"
        f"<p>Check: <code>{escape(one.check)}</code></p><p>Start: <code>{escape(one.start)}</code></p></details>"
        for task, one in plan["tasks"].items()
    )
    parts = {
        "name": escape(plan["about"].get("project", "")) or "A project",
        "verdict": escape("\n".join(map(describe_difference, found["differences"]))),
        "left": f"{format_count(left, 'run')} missing: the same command runs them." if left else "",
        "facts": "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts.items()),
        "spoken": escape("; ".join(f"{one['model']}: {one['passed']} of {one['tried']} passed" for one in models)),
        "chart": _draw_chart(models, letters),
        "columns": "".join(
            f"<th>{label}</th>" for label in ("Model", "passed", "a round", *(label for _, label in shown))
        ),
        "models": "".join(_render_model(one, letters[one["model"]], shown) for one in models),
        "heads": "".join(f"<th>{_render_letter(letter)} {escape(model)}</th>" for model, letter in letters.items()),
        "grid": "\n".join(grid),
        "tasks": "\n".join(tasks),
    }
    return escape_controls(Template(COMPARISON_PAGE.read_text(encoding="utf-8")).substitute(parts))


def _render_letter(letter: str) -> str:
    return f'<span class="letter-of">{letter}</span>'


def _render_cell(runs: Sequence[CompareRun], task: str, model: str, link: Callable[[CompareRun], str]) -> str:
    pills = (
        f'<a class="pill{" ok" if run["passed"] else ""}"{link(run)} title="{escape(_describe_run(run))}">'
        f"{'✓' if run['passed'] else '✗'} {'limit ' * (run['reason'] == 'timeout')}"
        f"{format_seconds(run['figures']['seconds'])}</a>"
        for run in runs
        if (run["task"], run["model"]) == (task, model)
    )
    return f"<td>{''.join(pills) or '–'}</td>"


def _render_model(one: dict[str, Any], letter: str, shown: Sequence[tuple[str, str]]) -> str:
    server = ", ".join(map(" ".join, one["server"].items()))
    head = f"<th>{_render_letter(letter)} {escape(one['model'])}<small>{escape(server)}</small></th>"
    passed = f"{one['passed']} of {one['tried']} ± {one['spread']:g}".replace(" ", "\N{NO-BREAK SPACE}")
    figures = ((label, f"{one['figures'][key]:,.9g}" if key in one["figures"] else "") for key, label in shown)
    cells = (
        f'<td data-name="{label}">{value}</td>'
        for label, value in (("passed", passed), ("a round", "{}–{}".format(*one["rounds"])), *figures)
    )
    return f"<tr>{head}{''.join(cells)}</tr>"


def _format_tick(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:.3g} min"


def _draw_chart(models: Sequence[dict[str, Any]], letters: dict[str, str]) -> str:
    """Draw each model by its seconds and its share of passed runs, in percent of the drawing."""
    tried = sorted((one for one in models if one["tried"]), key=lambda one: one["figures"]["seconds"])
    longest = max((one["figures"]["seconds"] for one in tried), default=1) or 1
    unit = 10 ** math.floor(math.log10(longest))
    end = math.ceil(longest / unit) * unit
    drawn = [f'<text x="{12 + 74 * share}%" y="93%">{_format_tick(end * share)}</text>' for share in (0, 0.5, 1)]
    places: list[tuple[float, float]] = []
    for one in tried:
        share, spread = one["passed"] / one["tried"], one["spread"] / one["tried"]
        x, y = 12 + 74 * one["figures"]["seconds"] / end, 84 - 78 * share
        beside = 24 * sum(abs(x - other) < 6 and abs(y - height) < 9 for other, height in places)
        places.append((x, y))
        low, high = (84 - 78 * min(max(share + side * spread, 0), 1) for side in (-1, 1))
        drawn.append(f'<g transform="translate({beside} 0)"><circle cx="{x:.1f}%" cy="{y:.1f}%" r="11"/>')
        drawn.append(f'<line class="spread" x1="{x:.1f}%" x2="{x:.1f}%" y1="{low:.1f}%" y2="{high:.1f}%"/>')
        drawn.append(f'<text class="letter" x="{x:.1f}%" y="{y:.1f}%">{letters[one["model"]]}</text></g>')
    return "\n".join(drawn)
