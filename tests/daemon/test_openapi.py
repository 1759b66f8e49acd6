"""The API as it describes itself, fed with what fits the description and what does not: no request is a server error."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import ollm.daemon
from tests.daemon.running import Daemon, daemon
from tests.sizes import size

SLOW = list(HealthCheck)
PAGES = Path(ollm.daemon.__file__).parent / "web"
EXAMPLES = size(2, 100)
ENDLESS = ("/sessions/{session_id}/events", "/events")
"""They stream until their client goes away; what they refuse is tested with the other routes."""


async def test_no_request_that_the_description_suggests_is_a_server_error(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["hi"] * 2000, "--tcp") as found:
        session = await found.open()
        description = (await found.ask("GET", "/schema/openapi.json")).json

        statuses = await asyncio.to_thread(_statuses, description, Address(found), session)

        assert (await found.ask("GET", "/health")).status == 200
    assert len(statuses) >= 19, "every route is asked"
    assert {"/policy/backtest", "/events", "/sessions/{session_id}/context", "/web/login"} <= set(description["paths"])
    codes = {tuple(one["responses"]) for path in description["paths"].values() for one in path.values()}
    assert len(codes) > 5, "each route lists the errors that it can give"
    assert "404" not in description["paths"]["/health"]["get"]["responses"]
    described = {re.sub(r"\{.*?\}", "{}", path) for path in description["paths"]}
    assert find_asked_paths() - described == set(), "the pages ask for nothing that is not described"
    assert not {asked: codes for asked, codes in statuses.items() if any(code >= 500 for code in codes)}
    assert sum(any(code < 300 for code in codes) for codes in statuses.values()) >= 5, statuses


def find_asked_paths() -> set[str]:
    """The routes that the modules of the pages name."""
    texts = [found.read_text(encoding="utf-8") for found in PAGES.glob("*.js")]
    named = [path for text in texts for path in re.findall(r"[\"`]((?:/|\$\{this\.place\}/)[a-z][^\"`\s]*)[\"`]", text)]
    assert len(named) > 25
    whole = [path.replace("${this.place}", "/sessions/{}").replace("${this.folderQuery}", "") for path in named]
    plain = {re.sub(r"\$\{.*?\}", "{}", path.partition("?")[0]) for path in whole}
    return {path for path in plain if not path.startswith("/web/files")}


class Address:
    """The daemon's address and the headers it expects."""

    def __init__(self, found: Daemon) -> None:
        self.url = f"http://127.0.0.1:{json.loads((found.home / 'run' / 'daemon.pid').read_text())['port']}"
        self.headers = {"authorization": f"Bearer {(found.home / 'run' / 'token').read_text()}"}


def _statuses(description: dict[str, Any], address: Address, session: str) -> dict[str, set[int]]:
    """The statuses each route answered with; those that close the session come last."""
    import schemathesis  # by the worker that needs it alone, as its checks

    offered = [found.ok() for found in schemathesis.openapi.from_dict(description).get_all_operations()]
    asked = sorted((one for one in offered if one.path not in ENDLESS), key=lambda one: one.method == "delete")
    return {f"{one.method} {one.path}": _asked(one, address, session) for one in asked}


def _asked(operation: Any, address: Address, session: str) -> set[int]:
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    codes: set[int] = set()
    conformance = checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance

    @seed(7)
    @settings(max_examples=EXAMPLES, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=SLOW)
    @given(case=operation.as_strategy(), real=st.booleans())
    def ask(case: Any, real: bool) -> None:
        if real and "session_id" in case.path_parameters:
            case.path_parameters["session_id"] = session
        response = case.call(base_url=address.url, headers=address.headers, timeout=20)
        case.validate_response(response, checks=[not_a_server_error, *conformance])
        codes.add(response.status_code)

    ask()
    return codes
