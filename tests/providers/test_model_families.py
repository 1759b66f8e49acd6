"""The call format of unknown models."""

import pytest

from ollm.providers.base import ModelInfo
from ollm.providers.model_families import choose_first_form


@pytest.mark.parametrize(
    ("info", "name", "form"),
    [
        (ModelInfo(name="x"), "qwen2.5-coder:1.5b", "blocks"),
        (ModelInfo(name="x"), "qwen2.5-coder:7b", "blocks"),
        (ModelInfo(name="x"), "qwen2.5-coder:32b", "unknown"),
        (ModelInfo(name="x"), "Qwen3-8B-Q4_K_M.gguf", "unknown"),
        (ModelInfo(name="x"), "qwen3:1.7b", "blocks"),
        (ModelInfo(name="x"), "llama3.2:3b", "blocks"),
        (ModelInfo(name="x"), "Llama-3.1-8B-Instruct", "unknown"),
        (ModelInfo(name="x"), "codellama-34b", "blocks"),
        (ModelInfo(name="x"), "Qwen_2.5-Coder-14B", "blocks"),
        (ModelInfo(name="x"), "gemma3:4b", "blocks"),
        (ModelInfo(name="x"), "gpt-oss:20b", "unknown"),
        (ModelInfo(name="x"), "devstral:24b", "unknown"),
        (ModelInfo(name="x"), "phi4-mini:3.8b", "blocks"),
        (ModelInfo(name="x"), "granite3.3:2b", "blocks"),
        (ModelInfo(name="x"), "smollm2", "blocks"),
        (ModelInfo(name="x"), "qwen2.5-coder:latest", "blocks"),
        (ModelInfo(name="x"), "llama3.2", "blocks"),
        (ModelInfo(name="x"), "llama3.1", "unknown"),
        (ModelInfo(name="x"), "phi-4-mini-instruct", "blocks"),
        (ModelInfo(name="x"), "phi-4", "unknown"),
        (ModelInfo(name="x"), "gemma-3n-E4B-it", "blocks"),
        (ModelInfo(name="x"), "granite-4.0-micro", "blocks"),
        (ModelInfo(name="x", template="<start_of_turn> tools"), "model.gguf", "unknown"),
        (ModelInfo(name="x", parameters=135_000_000), "smollm2", "none"),
        (ModelInfo(name="x"), "default", "unknown"),
        (ModelInfo(name="x", parameters=1_700_000_000), "my-model", "blocks"),
        (ModelInfo(name="x", parameters=70_000_000_000), "my-1b-model", "unknown"),
        (ModelInfo(name="x", parameters=9_000_000_000, template="{{ messages }}"), "my-model", "blocks"),
        (ModelInfo(name="x", parameters=9_000_000_000, template="{% if tools %}"), "my-model", "unknown"),
        (
            ModelInfo(name="x", parameters=8_000_000_000, architecture="qwen2", title="Qwen2.5-Coder"),
            "renamed",
            "blocks",
        ),
        (ModelInfo(name="x", parameters=8_000_000_000, template="<|start_header_id|> tools"), "renamed", "unknown"),
    ],
)
def test_template_and_size_decide_and_the_name_comes_last(info: ModelInfo, name: str, form: str) -> None:
    assert choose_first_form(info, name) == form
