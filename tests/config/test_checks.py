"""What a mistake in a safety section means: tools ask, variables stay at home, a wrong address is refused."""

from pathlib import Path

import pytest

from tests.config.files import loaded, problems


@pytest.mark.parametrize(
    "section", ["environment: off", "environment: {allowList: yes}", "environment: {denyPatterns: 5}"]
)
def test_an_environment_section_of_the_wrong_shape_lets_no_variable_through(tmp_path: Path, section: str) -> None:
    found = loaded(tmp_path, section)

    assert found.settings.environment.deny_patterns == ("*",)
    assert found.settings.environment.allow_list == ()
    assert len(found.problems) == 1


def test_a_rule_that_cannot_be_read_makes_every_tool_ask(tmp_path: Path) -> None:
    found = loaded(tmp_path, "policy: {rules: [{tool: ls, action: allow}, 7]}")

    assert found.settings.policy.rules[-1]["tool"] == "*"
    assert found.settings.policy.rules[-1]["action"] == "ask"
    assert "policy.rules[1]" in problems(found)[0]


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://host", "http://", "http:///", "http://a b", '"http://a\\tb"'])
def test_an_address_that_is_none_is_a_mistake(tmp_path: Path, url: str) -> None:
    found = loaded(tmp_path, f"provider: {{type: openai, baseUrl: {url}}}")

    assert "provider.baseUrl" in " ".join(problems(found))
    assert found.settings.provider.base_url is None


@pytest.mark.parametrize("url", ["http://localhost:11434", "https://models.example/v1"])
def test_an_address_with_a_scheme_and_a_host_is_taken(tmp_path: Path, url: str) -> None:
    assert loaded(tmp_path, f"provider: {{type: openai, baseUrl: {url}}}").settings.provider.base_url == url
