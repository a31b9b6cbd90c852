"""How a model is built, in words: wiring, norms, positions, heads, windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.view import Column, Facts, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gptscope.model.checkpoint import Checkpoint
    from gptscope.model.spec import Spec
    from gptscope.model.weights import Attention, Block, Model

    Pair = tuple[Column, Any]

WIRINGS: Mapping[str, str] = {  # keys of engine.forward.WIRINGS
    "pre_norm": "a norm before each part: x + part(norm(x))",
    "post_norm": "a norm after each sum: norm(x + part(x))",
    "norm_of_parts": "a norm after each part, before the sum: x + norm(part(x))",
    "parallel": "both parts read the same x: x + attention(norm(x)) + mlp(norm(x))",
    "norm_in_stream": "each sum starts from the norm: norm(x) + part(norm(x))",
}
NORMS = {"layer_norm": "layer norm", "rms_norm": "RMS norm"}
PAIRS: Mapping[str, str] = {  # by Spec.pairs
    "halves": "(i, i + P), as in Llama",
    "neighbours": "(0, 1), (2, 3), ... in the file; here put as (i, i + P)",
}
NAMED_PARTS = {"q": "queries", "k": "keys", "v": "values", "out": "attention output"}
SCALES = {
    "embed_scale": "rows of the token table, times",
    "residual_scale": "what each part adds, times",
    "logit_scale": "logits, times",
}
CAPS = {"score_cap": "scores, soft cap", "logit_cap": "logits, soft cap"}
FIELDS = {  # of analysis.info.Kind
    "scale": Column("score scale", "number"),
    "window": Column("window", "count"),
    "turned": Column("rotary dimensions of d_h", "count"),
    "base": Column("base", "number"),
    "slowest": Column("slowest, radians per token", "number"),
    "factor": Column("cos and sin times", "number"),
    "steepest": Column("steepest slope", "number"),
    "flattest": Column("flattest slope", "number"),
}
# What configs say of rotary positions; the words are Hugging Face's.
TURNING_KEYS = (
    "rope_theta",
    "rope_local_base_freq",
    "rotary_emb_base",
    "rotary_pct",
    "rotary_dim",
    "partial_rotary_factor",
    "rope_parameters",
    "rope_scaling",
    "original_max_position_embeddings",
)


def built(model: Model) -> Facts:
    """The choices of a model, but for those that have a table."""
    from gptscope.model.blocks import outlines

    s, blocks = model.spec, outlines(model.blocks)
    first = blocks[0]
    pairs = [
        (Column("blocks"), wiring(s.wiring, first)),
        (Column("norm"), f"{NORMS[s.norm]}, {gain_of(first)}"),
        (Column("eps of the norm", "number"), s.norm_eps),
        (Column("activation"), s.activation + (", gated" if first.mlp.gate is not None else "")),
        *positions(s),
        (Column("heads"), heads(s)),
        *([] if s.causal else [(Column("mask"), "none: every token sees the whole text")]),
        (Column("biases"), biases(first)),
        *[(Column(w, "number"), getattr(s, k)) for k, w in SCALES.items() if getattr(s, k) != 1],
        *[(Column(w, "number"), getattr(s, k)) for k, w in CAPS.items() if getattr(s, k)],
        *around(model),
        (Column("output"), output(model)),
        (Column("computed in"), str(model.dtype)),
    ]
    return Facts("How it is built", tuple(pairs))


def wiring(key: str, first: Block) -> str:
    """How the parts of a block follow each other."""
    if first.ln1_post is not None:
        return "a norm before and after each part: x + norm(part(norm(x)))"
    shared = "; one norm for both" if first.ln2 is None else ""
    return WIRINGS[key] + shared


def gain_of(block: Block) -> str:
    """What a norm learns."""
    return "with a gain" if block.ln1.shift is None else "with a gain and a shift"


def positions(s: Spec) -> list[Pair]:
    """How the order is known, and how numbers that turn are paired."""
    from gptscope.engine.lacking import POSITIONS

    rotary = s.positions == "rotary"
    return [(Column("positions"), POSITIONS[s.positions]), *([paired(s)] if rotary else [])]


def paired(s: Spec) -> Pair:
    """Which numbers of a head turn together, in the file and here."""
    return Column("rotary pairs, P of them"), PAIRS[s.pairs]


def heads(s: Spec) -> str:
    """Which heads read which keys and values."""
    from gptscope.commands.attention_built import sharing

    if s.n_kv_heads == s.n_heads:
        return "each has keys and values of its own"
    if s.n_kv_heads == 1:
        return "all share one key-value head"
    return sharing(s, range(s.n_heads))


def biases(block: Block) -> str:
    """Which matrices of a block have one."""
    parts = {words: getattr(block.attention, key) for key, words in NAMED_PARTS.items()}
    parts |= {"up": block.mlp.up, "gate": block.mlp.gate, "down": block.mlp.down}
    there = {words: part for words, part in parts.items() if part is not None}
    having = [words for words, part in there.items() if part.bias is not None]
    if len(having) in (0, len(there)):
        return "in every matrix of a block" if having else "none in the blocks"
    return ", ".join(having)


def around(model: Model) -> list[Pair]:
    """What some families have besides."""
    from gptscope.model.blocks import outlines

    attention: Attention = outlines(model.blocks)[0].attention
    found = {
        "queries and keys": None if attention.q_norm is None else "normed before their product",
        "embeddings": None if model.embed_norm is None else "normed before the first block",
        "tables": None if model.project_in is None else "narrower than the stream, widened",
        "after the last block": "no norm" if model.ln_final is None else None,
    }
    return [(Column(name), words) for name, words in found.items() if words]


def output(model: Model) -> str:
    """Where logits come from."""
    own = "the token table once more (tied)" if model.tied else "a table of its own"
    return own if model.output_bias is None else f"{own}, with a bias"


def layers(model: Model) -> Table:
    """What may differ from layer to layer; those that are alike share a row."""
    from gptscope.analysis.info import kinds, ranges

    found = kinds(model)
    shown = [
        (column, field)
        for field, column in FIELDS.items()
        if field == "window" or any(getattr(kind, field) is not None for kind in found)
    ]
    rows = [[ranges(at), *(getattr(kind, f) for _, f in shown)] for kind, at in found.items()]
    columns = [Column("layers"), *(column for column, _ in shown)]
    still = [kind.turned is None for kind in found]
    if any(still) and not all(still):
        columns.append(Column("positions"))
        for row, none in zip(rows, still, strict=True):
            row.append("no positions" if none else "rotary")
    return Table("Layers; the window is how many tokens are seen, - is all", tuple(columns), rows)


def rotary(model: Model, checkpoint: Checkpoint) -> tuple[Facts, ...]:
    """What the config says of rotary positions; the table of layers shows what came of it."""
    from gptscope.analysis.info import stretched
    from gptscope.commands.info_files import as_text, said

    if model.spec.positions != "rotary":
        return ()
    config = said(checkpoint)
    pairs = [(Column(key), as_text(config[key])) for key in TURNING_KEYS if config.get(key)]
    if stretched(model):
        pairs.append((Column("in longer texts"), "slower, by the rule named here"))
    return (Facts("Rotary positions, as the config says them", tuple(pairs)),) if pairs else ()
