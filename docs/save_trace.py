"""Save what transformers computes, for `gptscope check FOLDER --against FILE`.

    python docs/save_trace.py FOLDER trace.safetensors --text "Lily wanted to play with her"
    gptscope check FOLDER --against trace.safetensors

The values have gptscope's names: the stream before and after every block, what norms give, what
attention and feed-forward layer add, attention weights, logits. `--dtype float64` is for a closer
look. It needs torch and transformers, and runs no code that the folder brings along.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import AutoModelForCausalLM, AutoTokenizer

FINAL = ("ln_f", "norm", "final_layer_norm", "final_layernorm")
PARTS = {  # the name of a block's module -> gptscope's name of what it gives
    **dict.fromkeys(("attn", "self_attn", "attention"), "attn_out"),
    **dict.fromkeys(("mlp", "feed_forward"), "mlp_out"),
    **dict.fromkeys(("ln_1", "input_layernorm", "self_attn_layer_norm"), "ln1.out"),
    **dict.fromkeys(("ln_2", "post_attention_layernorm"), "ln2.out"),
}
FF = "_feedforward_layernorm"
PRE, MID, POST = f"pre{FF}", "post_attention_layernorm", f"post{FF}"
FOUR_NORMS = {MID: "ln1_post.out", PRE: "ln2.out", POST: "ln2_post.out"}  # Gemma 2 and 3
NORM_OF_PARTS = {MID: "ln1.out", POST: "ln2.out"}  # OLMo 2


class Exact(TorchFunctionMode):
    """Whoever asks for float32 gets float64: transformers narrows norms, softmax and turns."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        """The call in float64."""

        def wide(x: object) -> object:
            return torch.float64 if x is torch.float32 else x

        func = Tensor.double if func is Tensor.float else func
        return func(*map(wide, args), **{key: wide(x) for key, x in (kwargs or {}).items()})


def names(block: nn.Module) -> dict[str, str]:
    """What the modules of a block give, by the layout that its norms tell."""
    there = dict(block.named_children())
    if "self_attention" in there:  # BLOOM, whose parts add the stream by themselves
        return {child: name for child, name in PARTS.items() if name.endswith(".out")}
    return PARTS | (FOUR_NORMS if PRE in there else NORM_OF_PARTS if POST in there else {})


def listen(model: Any, values: dict[str, Tensor]) -> None:  # noqa: ANN401
    """Note what every block gives, and what its parts do."""

    def note(module: nn.Module, name: str) -> None:
        def after(_: nn.Module, __: Any, out: Any) -> None:  # noqa: ANN401
            values[name] = flat(out[0] if isinstance(out, tuple | list) else out)

        module.register_forward_hook(after)

    lists = (m for m in model.modules() if isinstance(m, nn.ModuleList))
    for layer, block in enumerate(
        next(m for m in lists if len(m) == model.config.num_hidden_layers)
    ):
        note(block, f"layers.{layer}.output")
        for child, name in names(block).items():
            if hasattr(block, child):
                note(getattr(block, child), f"layers.{layer}.{name}")
    for child, module in model.base_model.named_modules():
        if child.rpartition(".")[2] in FINAL and not any(map(str.isdigit, child)):
            note(module, "ln_final.out")


def flat(x: Tensor) -> Tensor:
    """The only text of a batch: [1, T, n] -> [T, n]."""
    return x.detach().reshape(-1, x.shape[-1]).contiguous()


def run(folder: Path, ids: list[int], dtype: torch.dtype) -> dict[str, Tensor]:
    """Every value of a pass that the modules of transformers show."""
    torch.set_default_dtype(dtype)
    values: dict[str, Tensor] = {}
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=dtype)
    listen(model.eval(), values)
    with torch.no_grad():
        wanted = {"output_attentions": True, "output_hidden_states": True, "use_cache": False}
        out = model(torch.tensor([ids]), **wanted)
    for layer, x in enumerate(out.hidden_states[:-1]):
        values[f"layers.{layer}.input"] = flat(x)
    for layer, weights in enumerate(out.attentions):
        for head, rows in enumerate(weights[0]):
            values[f"layers.{layer}.heads.{head}.weights"] = rows.contiguous()
    return values | {"logits": flat(out.logits), "embeddings": values["layers.0.input"]}


def main() -> None:
    """Run the model that is named, and save its values with the ids."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--text")
    what.add_argument("--ids", help="643,414,266")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    asked = parser.parse_args()
    text = asked.text and AutoTokenizer.from_pretrained(asked.folder)(asked.text).input_ids
    ids = text or [int(i) for i in asked.ids.split(",")]
    with Exact() if asked.dtype == "float64" else nullcontext():
        values = run(asked.folder, ids, getattr(torch, asked.dtype))
    save_file({"ids": torch.tensor(ids)} | {n: x.clone() for n, x in values.items()}, asked.output)


if __name__ == "__main__":
    main()
