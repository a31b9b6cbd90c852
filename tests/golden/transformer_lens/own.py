"""Where TransformerLens' own functions give other numbers: how far they are, and why."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from transformer_lens.tools.analysis.direct_logit_attribution import direct_logit_attribution
from transformer_lens.tools.analysis.logit_lens import logit_lens

import gptscope
from gptscope.analysis.attribution import attribute
from tests.golden.transformer_lens.changes import RESID_MID, aliases, bent, every_logit
from tests.golden.transformer_lens.opened import Opened
from tests.golden.transformer_lens.quantities import (
    DETECTED,
    Pair,
    array,
    composed,
    detected,
    lens_logits,
    shown,
    stripes,
    wanted,
)


def frozen_lens(o: Opened) -> Pair:
    """Probabilities of a lens with the scale that the end of the pass has."""
    cache = o.cache(o.folded)
    stack = cache.apply_ln_to_stack(cache.accumulated_resid(incl_mid=True))
    return probabilities(lens_logits(o)[0]), probabilities(read(o.folded, stack[:, 0]))


def processed_lens(o: Opened) -> Pair:
    """Logits of the lens of a model that was opened as it is by default."""
    seen = logit_lens(o.default, torch.tensor([o.ids]), incl_mid=True, positions=None)
    return lens_logits(o)[0], array(seen.values[:, 0])


def read(bridge: object, stream: torch.Tensor) -> np.ndarray:
    """The logits of normalised states."""
    return array(stream @ bridge.W_U + bridge.b_U)


def probabilities(logits: np.ndarray) -> np.ndarray:
    """The softmax of each row."""
    return torch.tensor(logits, dtype=torch.float64).softmax(-1).numpy()


def heads_given(o: Opened, of: dict[int, float]) -> np.ndarray:
    """What each head gives in gptscope's account."""
    terms = attribute(o.model, o.trace, o.last, of).terms
    return np.array([term.value for term in terms if term.head is not None])


def attribution_without_gain(o: Opened) -> Pair:
    """Heads by `logit_attrs` on weights as they are stored."""
    cache = o.cache(o.plain)
    found = cache.logit_attrs(cache.stack_head_results(), o.answer)[:, 0, -1]
    return heads_given(o, {o.answer: 1.0}), array(found)


def attribution_by_default(o: Opened) -> Pair:
    """Heads by `direct_logit_attribution` on a model that was opened as it is by default."""
    tokens = torch.tensor([o.ids])
    found = direct_logit_attribution(o.default, tokens, o.answer, unit="head").attribution
    return heads_given(o, {o.answer: 1.0}), array(found[:-1, 0])


def difference_by_default(o: Opened) -> Pair:
    """The same for answer - against."""
    tokens = torch.tensor([o.ids])
    found = direct_logit_attribution(o.default, tokens, o.answer, o.against, unit="head")
    return heads_given(o, wanted(o)), array(found.attribution[:-1, 0])


def sum_by_default(o: Opened) -> Pair:
    """The answer's logit, and what all parts of `direct_logit_attribution` add up to."""
    found = direct_logit_attribution(o.default, torch.tensor([o.ids]), o.answer).attribution
    return o.trace.logits[-1, [o.answer]], array(found.sum(0))


def shares_of_all_rows(o: Opened) -> Pair:
    """The shares of `gptscope heads`, and those of `detect_head`."""
    return shown(o), detected(o)[1]


def stripe_of_all_rows(o: Opened) -> Pair:
    """The induction score of `gptscope heads`, and the mean of the diagonal."""
    return shown(o)[[*DETECTED].index("induction")], stripes(o)[1]


def composition_as_stored(o: Opened) -> Pair:
    """`all_composition_scores` of weights as they are stored."""
    return composed(o, o.plain)


def edits_of_resid_mid(o: Opened) -> Pair:
    """All logits after an edit of `hook_resid_mid`, in every layer."""
    names = [name for name in aliases(o) if name.endswith(RESID_MID)]
    ours = [gptscope.trace(o.model, o.ids, "logits", [(name, bent)]).logits for name in names]
    hooks = [(name, lambda value, hook: bent(value[0])[None]) for name in names]  # noqa: ARG005
    return np.stack(ours), np.stack([array(every_logit(o, hook)) for hook in hooks])


BY_DEFAULT = "lens of a model opened by default, logits"
OWN: Mapping[str, tuple[Callable[[Opened], Pair], str]] = {
    "lens with `apply_ln_to_stack`, probabilities": (
        frozen_lens,
        "the scale of the last norm is frozen at the end of the pass; its `logit_lens` is right",
    ),
    BY_DEFAULT: (
        processed_lens,
        "`center_unembed` takes the mean off all logits: probabilities are the same",
    ),
    "`logit_attrs` of heads, weights as they are stored": (
        attribution_without_gain,
        "it does not know the gain of the last norm: that has to be folded first",
    ),
    "`direct_logit_attribution` of heads, opened by default": (
        attribution_by_default,
        "what value biases give is moved to a bias, and what goes to the mean logit taken off",
    ),
    "the same, answer - against": (
        difference_by_default,
        "the value biases alone: the mean logit is in both",
    ),
    "all parts of `direct_logit_attribution`, and the logit": (
        sum_by_default,
        "the mean logit, and the shift of the last norm (`b_U`), which is no part of it",
    ),
    "an edit of `hook_resid_mid`, all logits": (
        edits_of_resid_mid,
        "only the feed-forward layer reads it, not the stream: it is the input of `ln2` there",
    ),
    "`detect_head`, and the shares of `gptscope heads`": (
        shares_of_all_rows,
        "it counts every row, also those of tokens that have no such place to look at",
    ),
    "the diagonal, and the induction share of `gptscope heads`": (
        stripe_of_all_rows,
        "the first row of the diagonal has no earlier place of its token",
    ),
    "`all_composition_scores`, weights as they are stored": (
        composition_as_stored,
        "without the gains of the norms, and with what no norm lets through",
    ),
}
