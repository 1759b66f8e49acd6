"""Which server speaks the OpenAI API there, and what it tells about its models."""

from typing import Any

import pytest

from ollm.providers.base import ModelInfo
from ollm.providers.server_kind import (
    add_server_details,
    add_window_of_page,
)

INFO = ModelInfo(name="m", window=7)


def test_llama_cpp_tells_the_window_of_a_slot_eyes_and_template() -> None:
    details = {
        "default_generation_settings": {"n_ctx": 2048},
        "modalities": {"vision": True},
        "chat_template": "{{ x }}",
    }

    assert add_server_details(INFO, "llama.cpp", details) == ModelInfo(
        name="m", window=2048, vision=True, template="{{ x }}"
    )
    assert add_server_details(INFO, "llama.cpp", None) == ModelInfo(name="m", vision=False)


def test_lm_studio_tells_the_window_that_is_loaded() -> None:
    details = {
        "data": [
            {"id": "other", "loaded_context_length": 1},
            {"id": "m", "loaded_context_length": 4096, "max_context_length": 8192, "type": "vlm", "arch": "llama"},
        ]
    }

    assert add_server_details(INFO, "lm-studio", details) == ModelInfo(
        name="m", window=4096, trained_window=8192, vision=True, architecture="llama"
    )
    assert add_server_details(INFO, "lm-studio", {"data": []}) == ModelInfo(name="m", vision=False)


@pytest.mark.parametrize(
    ("page", "window"),
    [
        ({"data": [{"model_name": "m", "model_info": {"max_input_tokens": 10, "max_tokens": 20}}]}, 10),
        ({"data": [{"model_name": "m", "model_info": {"max_input_tokens": None, "max_tokens": 20}}]}, 20),
        ({"data": [{"model_name": "x", "model_info": {"max_tokens": 20}}]}, None),
        ({"max_total_tokens": 1, "max_model_len": 30}, 1),
        ({"max_input_length": 5}, 5),
        (None, None),
        ({"max_total_tokens": -1}, None),
    ],
)
def test_the_window_that_other_pages_give(page: Any, window: int | None) -> None:
    assert add_window_of_page(INFO, page).window == window
