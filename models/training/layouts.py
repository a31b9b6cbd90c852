"""Where each family keeps which weights, by the names of Hugging Face's layouts."""

from dataclasses import dataclass

Names = dict[str, list[str]]


@dataclass(frozen=True)
class Layout:
    """Its names, each with those of our modules whose weights, joined, it holds.

    `block` gives the names in a block, `{layer}` being its number; `turned` says whether the
    matrices are stored as [in, out].
    """

    whole: Names
    block: Names
    turned: bool


def gpt2_layout(prefix: str, whole: Names) -> Layout:
    """The layout of GPT-2, fused queries, keys and values, behind a prefix."""
    block = {
        "ln_1": ["ln1"],
        "attn.c_attn": ["attn.q", "attn.k", "attn.v"],
        "attn.c_proj": ["attn.out"],
        "ln_2": ["ln2"],
        "mlp.c_fc": ["mlp.up"],
        "mlp.c_proj": ["mlp.down"],
    }
    return Layout(
        {prefix + name: ours for name, ours in whole.items()},
        {f"{prefix}h.{{layer}}.{name}": ours for name, ours in block.items()},
        turned=True,
    )


LLAMA = Layout(
    {"model.embed_tokens": ["tokens"], "model.norm": ["ln_final"]},
    {
        "model.layers.{layer}.input_layernorm": ["ln1"],
        "model.layers.{layer}.self_attn.q_proj": ["attn.q"],
        "model.layers.{layer}.self_attn.k_proj": ["attn.k"],
        "model.layers.{layer}.self_attn.v_proj": ["attn.v"],
        "model.layers.{layer}.self_attn.o_proj": ["attn.out"],
        "model.layers.{layer}.post_attention_layernorm": ["ln2"],
        "model.layers.{layer}.mlp.gate_proj": ["mlp.gate"],
        "model.layers.{layer}.mlp.up_proj": ["mlp.up"],
        "model.layers.{layer}.mlp.down_proj": ["mlp.down"],
    },
    turned=False,
)
ENDS = {"wte": ["tokens"], "ln_f": ["ln_final"]}
LAYOUTS = {
    "gpt2": gpt2_layout("transformer.", ENDS | {"wpe": ["positions"]}),
    "llama": LLAMA,
    "toy": gpt2_layout("", ENDS),
}
