"""Settings from the environment and from flags."""

import pytest

from ollm.config.variables import parse_ollama_host, read_flags, read_variables
from ollm.config.yaml_tree import to_plain_value


def test_our_variables_set_what_they_name_and_empty_ones_nothing() -> None:
    environment = {"OLLM_MODEL": " qwen ", "OLLM_CONTEXT_WINDOW": "8192", "OLLM_BASE_URL": " ", "OTHER": "x"}

    assert to_plain_value(read_variables(environment)) == {"provider": {"model": "qwen", "contextWindow": 8192}}


def test_a_window_that_is_no_number_stays_text_to_be_told_as_a_mistake() -> None:
    assert to_plain_value(read_variables({"OLLM_CONTEXT_WINDOW": "８k"})) == {"provider": {"contextWindow": "８k"}}


def test_a_flag_that_was_not_given_sets_nothing() -> None:
    assert to_plain_value(read_flags({"policy.approval": "ask", "provider.model": None, "a.b": [1, {"c": 2}]})) == {
        "policy": {"approval": "ask"},
        "a": {"b": [1, {"c": 2}]},
    }


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":1234", "http://127.0.0.1:1234"),
        ("gpu-box", "http://gpu-box:11434"),
        ("gpu-box:99999", "http://gpu-box:11434"),
        ("http://gpu-box", "http://gpu-box:80"),
        ("https://gpu-box/ollama/", "https://gpu-box:443/ollama"),
        ("[::1]:5", "http://[::1]:5"),
        ("::", "http://[::1]:11434"),
        ('"quoted:7"', "http://quoted:7"),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(host: str, url: str) -> None:
    assert parse_ollama_host(host) == url
