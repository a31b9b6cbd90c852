"""How each project names and turns the same arrays: from the twin's layout to the file's."""

import numpy as np

Arrays = dict[str, np.ndarray]


def as_it_is(weights: Arrays) -> Arrays:
    """The twin's own names and layout, which are the toy's."""
    return weights


def turned(weights: Arrays) -> Arrays:
    """Matrices as `nn.Linear` keeps them: [in, out] -> [out, in]."""
    return {name: w.T if ".c_" in name and w.ndim == 2 else w for name, w in weights.items()}


def inside_transformer(weights: Arrays) -> Arrays:
    """`transformer.` before every name but the output matrix's."""
    return {n if n.startswith("lm_head") else f"transformer.{n}": w for n, w in weights.items()}


def with_masks(weights: Arrays, dtype: str) -> Arrays:
    """The weights, and in each block the causal mask that old versions kept: [1, 1, ctx, ctx]."""
    ctx = len(weights["wpe.weight"])
    blocks = [n.removesuffix(".c_attn.weight") for n in weights if n.endswith(".c_attn.weight")]
    return weights | {f"{b}.bias": np.tril(np.ones((1, 1, ctx, ctx), dtype)) for b in blocks}


def old_hugging_face(weights: Arrays) -> Arrays:
    """No prefix, byte masks, and the number that once stood in for minus infinity."""
    blocks = [n.removesuffix(".c_attn.weight") for n in weights if n.endswith(".c_attn.weight")]
    fillers = {f"{block}.masked_bias": np.array(-1e4, np.float32) for block in blocks}
    return with_masks(weights, "uint8") | fillers


def mingpt(weights: Arrays) -> Arrays:
    """Turned matrices and float32 masks."""
    return inside_transformer(with_masks(turned(weights), "float32"))


def compiled_nanogpt(weights: Arrays) -> Arrays:
    """After `torch.compile`: turned, prefixed, and the embedding stored again as the output."""
    twice = inside_transformer(turned(weights) | {"lm_head.weight": weights["wte.weight"]})
    return {f"_orig_mod.{name}": w for name, w in twice.items()}
