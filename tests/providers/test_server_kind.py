"""Facts about models from servers with the OpenAI API."""

from typing import Any

import pytest

from ollm.providers.base import ModelInfo
from ollm.providers.server_kind import (
    add_window_of_page,
)

INFO = ModelInfo(name="m", window=7)


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
