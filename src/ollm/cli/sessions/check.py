"""`sessions check [--repair]`: reads every session from end to end, says what is wrong, and repairs it when told to."""

from __future__ import annotations

import click

from ollm.cli.options import json_option, print_json
from ollm.domain.counting import format_count
from ollm.domain.errors import ExitCode
from ollm.system.terminal_text import make_printable


@click.command()
@click.option("--repair", is_flag=True, help="Repair what can be repaired; keep the damaged file as a copy.")
@json_option
def check(repair: bool, as_json: bool) -> int:
    """Find damaged sessions; exit code 1 if any stays damaged."""
    from ollm.app import ProcessScope
    from ollm.cli.sessions.table import make_progress

    library = ProcessScope().library
    findings = library.check(repair=repair, progress=make_progress("Checking"))
    if as_json:
        print_json(findings)
    else:
        for found in findings:
            print(f"{found.session_id}  {found.outcome}: {make_printable(found.problem)}")
        healthy = len(library.places.list_ids()) - len(
            {found.session_id for found in findings if found.outcome != "mended"}
        )
        print(f"{format_count(healthy, 'session')} OK.")
    return ExitCode.FAILED if any(found.outcome == "damaged" for found in findings) else ExitCode.DONE
