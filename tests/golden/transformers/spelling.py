"""A config as checkpoints from before transformers 5 spell it."""

from typing import Any

Config = dict[str, Any]
PLAIN = {"rope_type", "rope_theta", "partial_rotary_factor"}


def scaling(rope: Config, key: str = "type") -> Config | None:
    """The old `rope_scaling`: nothing for the default."""
    if rope["rope_type"] == "default":
        return None
    key = "rope_type" if rope["rope_type"] == "llama3" else key
    return {key: rope["rope_type"]} | {k: v for k, v in rope.items() if k not in PLAIN}


def rope_keys(config: Config) -> Config:
    """The old keys for `rope_parameters`."""
    rope = config["rope_parameters"]
    if "full_attention" in rope:
        full, local = rope["full_attention"], rope["sliding_attention"]
        bases = {"rope_theta": full["rope_theta"], "rope_local_base_freq": local["rope_theta"]}
        return bases | {"rope_scaling": scaling(full, "rope_type")}
    if config["model_type"] == "gpt_neox":
        factor, base = rope["partial_rotary_factor"], rope["rope_theta"]
        return {"rotary_pct": factor, "rotary_emb_base": base, "rope_scaling": scaling(rope)}
    apart = {"original_max_position_embeddings"} if config["model_type"] == "phi3" else set()
    kept = {key: value for key, value in rope.items() if key not in apart}
    partial = {k: v for k, v in rope.items() if k == "partial_rotary_factor" and v != 1}
    return partial | {"rope_theta": rope["rope_theta"], "rope_scaling": scaling(kept)}


def old_spelling(config: Config, **more: object) -> Config:
    """The same config in old words, with `more` as it stands in checkpoints on the hub."""
    new = {"rope_parameters", "dtype", "layer_types", "_sliding_window_pattern"}
    if config.get("head_dim") == config["hidden_size"] // config["num_attention_heads"]:
        new.add("head_dim")
    old = {key: value for key, value in config.items() if key not in new}
    ropes = rope_keys(config) if "rope_parameters" in config else {}
    return old | ropes | {"torch_dtype": "float32", "transformers_version": "4.40.0"} | more
