"""Which server speaks the OpenAI API there, and what it tells about its models."""

from typing import Any

import pytest

from ollm.providers.base import ModelInfo
from ollm.providers.server_kind import (
    add_server_details,
    add_window_of_page,
    choose_window_page,
    convert_completion_chunk,
    detect_kind,
    parse_model_infos,
    split_base_url,
)

INFO = ModelInfo(name="m", window=7)


@pytest.mark.parametrize(
    ("url", "root", "api"),
    [
        ("http://h:1", "http://h:1", "/v1"),
        ("http://h:1/", "http://h:1", "/v1"),
        ("http://h:1/v1/", "http://h:1", "/v1"),
        ("http://h/openai/v2", "http://h/openai", "/v2"),
        ("http://h/api/openai", "http://h/api/openai", ""),
    ],
)
def test_the_root_and_the_path_of_the_api(url: str, root: str, api: str) -> None:
    assert split_base_url(url) == (root, api)


@pytest.mark.parametrize(
    ("listed", "kind"),
    [
        ({"data": [{"owned_by": "llamacpp"}]}, "llama.cpp"),
        ({"data": [{"owned_by": "me"}, {"owned_by": "vllm"}]}, "vllm"),
        ({"data": [{"owned_by": "organization_owner"}]}, "lm-studio"),
        ({"data": [{"owned_by": "me"}, {"owned_by": 5}]}, "other"),
        ({"data": []}, "other"),
        ({}, "other"),
        ("nonsense", "other"),
    ],
)
def test_the_kind_is_known_by_who_owns_the_models(listed: Any, kind: str) -> None:
    assert detect_kind(listed) == kind


def test_the_models_of_a_list() -> None:
    listed = {
        "data": [
            {"id": "a", "max_model_len": 4096, "meta": {"size": 10, "n_ctx_train": 8192, "n_params": 3}},
            {"id": "b", "max_model_len": "many", "meta": None},
            {"id": 5},
            {"name": "no id"},
            "nonsense",
        ]
    }

    assert parse_model_infos(listed) == [
        ModelInfo(name="a", size=10, window=4096, trained_window=8192, parameters=3),
        ModelInfo(name="b"),
    ]
    assert parse_model_infos(None) == []


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


@pytest.mark.parametrize("kind", ["vllm", "other"])
def test_others_tell_nothing_more(kind: Any) -> None:
    assert add_server_details(INFO, kind, {"default_generation_settings": {"n_ctx": 1}}) is INFO


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


@pytest.mark.parametrize(
    ("listed", "page"),
    [
        ({"data": [{"id": "m", "owned_by": "openai"}]}, "/model/info"),
        ({"data": [{"id": "m", "owned_by": "m"}]}, "/info"),
        ({"data": []}, "/info"),
        (None, "/info"),
        ({"data": [{"id": "m", "owned_by": "someone"}]}, None),
        ({"data": [{"id": "m"}]}, None),
    ],
)
def test_only_a_page_that_is_likely_there_is_asked_for(listed: Any, page: str | None) -> None:
    assert choose_window_page(listed, "m") == page


@pytest.mark.parametrize(
    ("chunk", "ended"),
    [
        ({"content": "x"}, None),
        ({"content": "x", "stop": False, "stop_type": "limit"}, None),
        ({"content": "x", "stop": True, "stop_type": "limit"}, "length"),
        ({"content": "x", "stop": True, "stop_type": "eos"}, "stop"),
    ],
)
def test_a_chunk_of_a_completion_in_the_shape_of_a_chat(chunk: dict, ended: str | None) -> None:
    converted = convert_completion_chunk({**chunk, "timings": {"a": 1}, "prompt_progress": {"b": 2}})

    assert converted == {
        "choices": [{"delta": {"content": "x"}, "finish_reason": ended}],
        "timings": {"a": 1},
        "prompt_progress": {"b": 2},
    }
