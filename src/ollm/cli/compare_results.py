"""`ollm compare show`: the newest comparison as a table, as JSON or as a page."""

from __future__ import annotations

from pathlib import Path

import click

from ollm.app.compare_page import render_file
from ollm.app.process import ProcessScope
from ollm.cli.options import confirm_or_fail, format_table, print_result, shared_options, warn
from ollm.config.change import set_setting
from ollm.domain.text import format_count
from ollm.services.compare import (
    FIGURES,
    Comparison,
    choose_best,
    count_missing,
    describe_difference,
    find_results,
    load_newest,
    summarize,
)
from ollm.services.session_export.target import check_output, write_export

HEADINGS = ("model", "passed", "a round", "s", "reading", "writing", "tools", "read", "written", "steps", "failed", "J")


@click.command()
@click.option("--html", metavar="FILE", help="Write a page with the sessions of all runs.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@shared_options("workspace", "json")
def show(html: str | None, force: bool, workspace: Path, as_json: bool) -> None:
    """Show the newest comparison of this project."""
    process = ProcessScope(workspace=workspace)
    comparison = load_newest(find_results(process.home.root, workspace))
    if html:
        target = check_output(html, force=force)
        page = render_file(comparison, process.session_files.open_reader)
        write_export(target, (text.encode("utf-8", "replace") for text in page), process.home.exports)
        warn(f"wrote {target}.")
    else:
        print_comparison(comparison, as_json=as_json)


@click.command()
@shared_options("workspace", "yes", "json")
def best(workspace: Path, yes: bool, as_json: bool) -> None:
    """Name the best model for each role by the newest comparison, and set `roles` after a question."""
    process = ProcessScope(workspace=workspace)
    found = choose_best(load_newest(find_results(process.home.root, workspace)))
    rows = [(role, one["model"], one["reason"]) for role, one in found.items()]
    print_result(found, format_table(("role", "model", "because it"), rows), as_json=as_json)
    if as_json and not yes:
        return
    confirm_or_fail(f"Set these roles in {process.home.config}?", yes)
    for role, one in found.items():
        set_setting(process.home, f"roles.{role}", one["model"])
    warn("set. `ollm config show` has all settings.")


def print_comparison(comparison: Comparison, *, as_json: bool) -> None:
    print_result(summarize(comparison), format_comparison(comparison), as_json=as_json)


def format_comparison(comparison: Comparison) -> str:
    (plan, runs), found = comparison, summarize(comparison)
    rows = [
        (
            one["model"],
            f"{one['passed']} of {one['tried']}",
            "{} to {}".format(*one["rounds"]) if plan["times"] > 1 else "",
            *(f"{one['figures'][name]:,g}" if name in one["figures"] else "" for name in FIGURES),
        )
        for one in found["models"]
    ]
    passed = [
        [[run["passed"] for run in runs if (run["task"], run["model"]) == (task, model)] for model in plan["models"]]
        for task in plan["tasks"]
    ]
    grid = [
        (task, *(f"{sum(one)} of {len(one)}" if one else "" for one in row))
        for task, row in zip(plan["tasks"], passed, strict=True)
    ]
    left = count_missing(comparison)
    given = [f"{key}={value}" for key, value in plan["settings"].items()] + [f"limit {plan['limit']}"] * bool(
        plan["limit"]
    )
    facts = (f"{format_count(len(plan['tasks']), 'task')} × {plan['times']}", *given, *plan["about"].values())
    parts = (
        ", ".join(facts) + (f". {format_count(left, 'run')} missing: the same command runs them." if left else ""),
        format_table(HEADINGS, rows) + "\nSeconds, tokens and steps are means of a run.",
        format_table(("task", *plan["models"]), grid),
        "\n".join(map(describe_difference, found["differences"])),
        "\n".join(f"{one['model']}: {', '.join(map(' '.join, one['server'].items()))}" for one in found["models"]),
    )
    return "\n\n".join(filter(None, parts))
