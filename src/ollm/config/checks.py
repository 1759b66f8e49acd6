"""Checks that a type cannot express, and what a mistake in a safety section means."""

from __future__ import annotations

from typing import Any

from ollm.config.validation import Mistake, SettingsReader
from ollm.config.yaml_tree import SourcePosition

ENVIRONMENT_SHAPE = ("environment", "environment.allowList", "environment.denyPatterns")
ASK_ALL_RULE = {"tool": "*", "action": "ask", "message": "a rule in the configuration cannot be read"}


def apply_safe_fallbacks(values: dict[str, Any], places: dict[str, SourcePosition], mistakes: list[Mistake]) -> None:
    """What a mistake in a safety section means: tools ask, variables stay at home, sessions stay here."""
    if any(mistake.key in ENVIRONMENT_SHAPE for mistake in mistakes):
        values["environment"] = {"allowList": [], "denyPatterns": ["*"]}
    if any(mistake.key == "archive" or mistake.key.startswith("archive.") for mistake in mistakes):
        values["archive"] = {}  # a mistyped `workspaces` must not send everything
    bad = [mistake for mistake in mistakes if mistake.key == "policy" or mistake.key.startswith("policy.rules")]
    if bad:
        policy = values.setdefault("policy", {})
        policy["rules"] = [*policy.get("rules", []), ASK_ALL_RULE]
        places[f"policy.rules[{len(policy['rules']) - 1}]"] = bad[0].place


def check_url(values: dict[str, Any], reading: SettingsReader) -> None:
    provider = values.get("provider", {})
    url = provider.get("baseUrl")
    if url is None:
        return
    scheme, _, rest = url.partition("://")
    if scheme not in ("http", "https") or not rest.strip("/") or not url.isprintable() or " " in url:
        place = reading.places.pop("provider.baseUrl")
        reading.report_mistake(place, "provider.baseUrl", "expected a URL such as http://localhost:11434")
        del provider["baseUrl"]
