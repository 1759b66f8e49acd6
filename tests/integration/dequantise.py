"""Writes the weights of a GGUF file as vLLM and transformers read them: `dequantise.py FILE.gguf FOLDER`.

Run by the Python beside vLLM, which has what it needs. Only models of the architecture qwen2.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OTHER_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def rename_tensor(name: str) -> str:
    """`blk.3.attn_q.bias` as `model.layers.3.self_attn.q_proj.bias`."""
    *place, kind = name.split(".")
    if place[0] != "blk":
        return f"{OTHER_NAMES[place[0]]}.{kind}"
    return f"model.layers.{place[1]}.{LAYER_NAMES[place[2]]}.{kind}"


def build_config(facts: dict[str, Any], *, tied: bool) -> dict[str, Any]:
    named = {
        "hidden_size": "qwen2.embedding_length",
        "num_hidden_layers": "qwen2.block_count",
        "intermediate_size": "qwen2.feed_forward_length",
        "num_attention_heads": "qwen2.attention.head_count",
        "num_key_value_heads": "qwen2.attention.head_count_kv",
        "rms_norm_eps": "qwen2.attention.layer_norm_rms_epsilon",
        "rope_theta": "qwen2.rope.freq_base",
        "max_position_embeddings": "qwen2.context_length",
        "bos_token_id": "tokenizer.ggml.bos_token_id",
        "eos_token_id": "tokenizer.ggml.eos_token_id",
    }
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "hidden_act": "silu",
        "torch_dtype": "bfloat16",
        "use_sliding_window": False,
        "vocab_size": len(facts["tokenizer.ggml.tokens"]),
        "tie_word_embeddings": tied,
        **{name: facts[key] for name, key in named.items()},
    }


def write_tokenizer(facts: dict[str, Any], folder: Path) -> None:
    """The byte-level BPE of the file, with the special tokens and the chat template it names."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    tokens = facts["tokenizer.ggml.tokens"]
    merges = [tuple(pair.split(" ", 1)) for pair in facts["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE({token: at for at, token in enumerate(tokens)}, merges, fuse_unk=False))
    words = Regex(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    split = pre_tokenizers.Split(words, behavior="isolated")
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence([split, bytewise])
    made.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, facts["tokenizer.ggml.token_type"], strict=True) if kind == 3]
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    made.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": tokens[facts["tokenizer.ggml.eos_token_id"]],
        "pad_token": tokens[facts["tokenizer.ggml.padding_token_id"]],
        "chat_template": facts["tokenizer.chat_template"],
        "model_max_length": facts["qwen2.context_length"],
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def main(file: Path, folder: Path) -> None:
    import gguf
    import torch
    from safetensors.torch import save_file

    reader = gguf.GGUFReader(file)
    facts = {name: field.contents() for name, field in reader.fields.items()}
    weights = {}
    for tensor in reader.tensors:
        values = torch.from_numpy(gguf.quants.dequantize(tensor.data, tensor.tensor_type).copy())
        weights[rename_tensor(tensor.name)] = values.reshape(tuple(reversed(tensor.shape.tolist()))).to(torch.bfloat16)
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(facts, folder)
    tied = "lm_head.weight" not in weights
    (folder / "config.json").write_text(json.dumps(build_config(facts, tied=tied)), encoding="utf-8")
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
