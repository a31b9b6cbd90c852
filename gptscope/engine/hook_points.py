"""The name, axes and meaning of every value of a pass. This is the only table of them.

Letters: T tokens, S tokens seen (S = T unless earlier ones are cached), d width, d_h head width,
F feed-forward width, V vocabulary; {l} is a layer and {h} a head, both counted from 0.

One alias of TransformerLens may stand for several values: it is the first of them that a model has.
Its `hook_q` is the query before it is normalised or turned; its `hook_attn_out` is what attention
adds, after a norm if there is one between.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gptscope.errors import UsageError


@dataclass(frozen=True)
class HookPoint:
    """A value that can be looked at and changed."""

    name: str
    axes: str  # of one head, where there are heads
    meaning: str
    alias: str = ""  # the name in TransformerLens
    turned_alias: str = ""  # a second one, where it has a name for the turned value

    @property
    def key(self) -> str:
        """The name without layer and head; no two are alike."""
        return self.name.rpartition("}.")[2]

    @property
    def names(self) -> tuple[str, ...]:
        """Its name, and the aliases if there are any."""
        return tuple(name for name in (self.name, self.alias, self.turned_alias) if name)

    @property
    def at_the_end(self) -> bool:
        """Whether it comes after the last block."""
        return self.name.startswith(("ln_final.", "logits"))

    @property
    def per_head(self) -> bool:
        """Whether the engine keeps it as one stacked array [H, ...] per layer."""
        return "{h}" in self.name


_L, _H, _B = "layers.{l}", "layers.{l}.heads.{h}", "blocks.{l}"


def _hook(alias: str, name: str) -> str:
    return f"{alias}.{name}" if alias else ""


def _norm(name: str, alias: str, what: str, added: str = "") -> tuple[HookPoint, ...]:
    return (
        HookPoint(f"{name}.mean", "T", f"the mean of each list that enters {what}"),
        HookPoint(
            f"{name}.variance",
            "T",
            f"the population variance of each list that enters {what}",
            _hook(alias, "hook_scale"),
        ),
        HookPoint(
            f"{name}.mean_square",
            "T",
            f"the mean square of each list that enters {what}, if it is an RMS norm",
            _hook(alias, "hook_scale"),
        ),
        HookPoint(
            f"{name}.normalized",
            "T d",
            f"(x - mean) / sqrt(variance + eps) in {what}; in an RMS norm the mean stays",
            _hook(alias, "hook_normalized"),
        ),
        HookPoint(f"{name}.out", "T d", f"what leaves {what}: normalized * gain + shift", added),
    )


HOOK_POINTS: tuple[HookPoint, ...] = (
    HookPoint("token_embeddings", "T d", "the row of each token in the token table", "hook_embed"),
    HookPoint(
        "position_embeddings",
        "T d",
        "the row of each position in the table of positions",
        "hook_pos_embed",
    ),
    *_norm("embed_norm", "", "the norm of the embeddings, where there is one"),
    HookPoint("embeddings", "T d", "token row + position row, where the residual stream begins"),
    HookPoint(f"{_L}.input", "T d", "residual stream entering the block", f"{_B}.hook_resid_pre"),
    *_norm(f"{_L}.ln1", f"{_B}.ln1", "the first norm of the block"),
    HookPoint(
        f"{_H}.q_before_norm",
        "T d_h",
        "queries before their norm, where there is one",
        f"{_B}.attn.hook_q",
    ),
    HookPoint(
        f"{_H}.k_before_norm",
        "T d_h",
        "keys before their norm, where there is one",
        f"{_B}.attn.hook_k",
    ),
    HookPoint(
        f"{_H}.q_before_rope",
        "T d_h",
        "queries before they turn, where positions are rotary",
        f"{_B}.attn.hook_q",
    ),
    HookPoint(f"{_H}.k_before_rope", "T d_h", "keys before they turn", f"{_B}.attn.hook_k"),
    HookPoint(f"{_H}.q", "T d_h", "queries", f"{_B}.attn.hook_q", f"{_B}.attn.hook_rot_q"),
    HookPoint(f"{_H}.k", "T d_h", "keys", f"{_B}.attn.hook_k", f"{_B}.attn.hook_rot_k"),
    HookPoint(f"{_H}.v", "T d_h", "values", f"{_B}.attn.hook_v"),
    HookPoint(f"{_H}.scores", "T S", "q k', raw"),
    HookPoint(
        f"{_H}.scaled_masked",
        "T S",
        "scores times the scale, with cap and bias if there are any; -inf where hidden",
        f"{_B}.attn.hook_attn_scores",
    ),
    HookPoint(
        f"{_H}.weights",
        "T S",
        "softmax of each row: how much each token reads from each",
        f"{_B}.attn.hook_pattern",
    ),
    HookPoint(f"{_H}.out", "T d_h", "weights times values", f"{_B}.attn.hook_z"),
    HookPoint(f"{_L}.attn_concat", "T H*d_h", "the heads side by side"),
    HookPoint(
        f"{_L}.attn_out",
        "T d",
        "what leaves attention, before any norm of it",
        f"{_B}.hook_attn_out",
    ),
    *_norm(
        f"{_L}.ln1_post",
        f"{_B}.ln1_post",
        "the norm after attention, where there is one",
        f"{_B}.hook_attn_out",
    ),
    HookPoint(
        f"{_L}.resid_after_attn",
        "T d",
        "residual stream after attention",
        f"{_B}.hook_resid_mid",
    ),
    *_norm(f"{_L}.ln2", f"{_B}.ln2", "the second norm of the block"),
    HookPoint(f"{_L}.mlp_hidden", "T F", "hidden units before activation", f"{_B}.mlp.hook_pre"),
    HookPoint(
        f"{_L}.mlp_gate",
        "T F",
        "gates of the hidden units before activation, where there are gates",
        f"{_B}.mlp.hook_pre",
    ),
    HookPoint(
        f"{_L}.mlp_up", "T F", "hidden units that gates multiply", f"{_B}.mlp.hook_pre_linear"
    ),
    HookPoint(
        f"{_L}.mlp_act",
        "T F",
        "hidden units after activation; activated gates times units, where there are gates",
        f"{_B}.mlp.hook_post",
    ),
    HookPoint(
        f"{_L}.mlp_out",
        "T d",
        "what leaves the feed-forward layer, before any norm of it",
        f"{_B}.hook_mlp_out",
    ),
    *_norm(
        f"{_L}.ln2_post",
        f"{_B}.ln2_post",
        "the norm after the feed-forward layer, if there is one",
        f"{_B}.hook_mlp_out",
    ),
    HookPoint(f"{_L}.output", "T d", "residual stream leaving the block", f"{_B}.hook_resid_post"),
    *_norm("ln_final", "ln_final", "the last norm"),
    HookPoint("logits_before_cap", "T V", "the scores before their soft cap, where there is one"),
    HookPoint("logits", "T V", "a score for every next token"),
)

BY_KEY: Mapping[str, HookPoint] = {point.key: point for point in HOOK_POINTS}
BY_NAME: Mapping[str, HookPoint] = {point.name: point for point in HOOK_POINTS}
BY_ALIAS: Mapping[str, tuple[HookPoint, ...]] = {
    alias: tuple(
        sorted(
            (point for point in HOOK_POINTS if alias in point.names[1:]),
            key=lambda point: not point.key.endswith(".out"),
        )
    )
    for alias in dict.fromkeys(alias for point in HOOK_POINTS for alias in point.names[1:])
}


@dataclass(frozen=True)
class Address:
    """Which value: a hook point, and its layer and head where it has them (None: all heads)."""

    point: HookPoint
    layer: int | None = None
    head: int | None = None
    candidates: tuple[HookPoint, ...] = ()  # of an alias: the first that a model has is meant

    @property
    def by_alias(self) -> bool:
        """Whether it was asked for by its name in TransformerLens."""
        return bool(self.candidates)


def is_norm(name: str) -> bool:
    """Whether this is a norm's name, with values under it: `layers.0.ln1`, `ln_final`."""
    return bool(
        re.fullmatch(r"(layers\.\d+\.ln[12](_post)?|ln_final|embed_norm)", name, flags=re.ASCII)
    )


def in_place(pattern: str, asked: str) -> str:
    """A name with the layer and the head that were asked for, or the first."""
    numbers = [*re.findall(r"\d{1,9}", asked), "0", "0"]
    return pattern.format(l=numbers[0], h=numbers[1])


def parse(name: str) -> Address:
    """The address of a full name (`layers.0.heads.1.q`) or of its TransformerLens alias.

    Raises:
        UsageError: nothing is called so; it names the nearest.
    """
    pattern = re.sub(r"^(layers|blocks)\.(\d{1,9})(?=\.)", r"\1.{l}", name, flags=re.ASCII)
    pattern = re.sub(r"\.heads\.(\d{1,9})(?=\.)", ".heads.{h}", pattern, flags=re.ASCII)
    candidates = BY_ALIAS.get(pattern, ())
    point = BY_NAME.get(pattern) or next(iter(candidates), None)
    if point is None or "{" in name:
        from difflib import get_close_matches

        key = pattern.rpartition("}.")[2]  # in a head, where that was left out
        near = [key] * (key in BY_KEY) or get_close_matches(pattern, [*BY_NAME, *BY_ALIAS], n=1)
        nearest = [BY_KEY[one].name if one in BY_KEY else one for one in near]
        hint = f"the nearest is {in_place(nearest[0], name)}" if near else None
        raise UsageError(f"no value is called {name}", hint)
    numbers = [int(part) for part in name.split(".") if part.isdigit()]
    layer = numbers[0] if "{l}" in pattern else None
    head = numbers[-1] if "{h}" in pattern else None
    return Address(point, layer, head, candidates)
