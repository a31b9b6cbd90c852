"""What both programs make of the same pass: each a pair of arrays, gptscope's first.

`QUANTITIES` are what must agree; TransformerLens' own functions give it wherever there is one.
"""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from transformer_lens import head_detector
from transformer_lens.tools.analysis.logit_lens import logit_lens

import gptscope
from gptscope.analysis.attribution import attribute, source_contributions, unit_contributions
from gptscope.analysis.heads.composition import WAYS, composition
from gptscope.analysis.heads.eigen import eigen
from gptscope.analysis.heads.patterns import PATTERNS, similarity, stripe
from gptscope.analysis.heads.scores import SHARES, scores
from gptscope.analysis.lens import lens, logits_at, states
from tests.golden.transformer_lens.opened import Opened

Pair = tuple[np.ndarray, np.ndarray]
DETECTED: dict[str, head_detector.HeadName] = {
    "previous": "previous_token_head",
    "duplicate": "duplicate_token_head",
    "induction": "induction_head",
}
LN2 = np.log(2.0)


def logits(o: Opened) -> Pair:
    """The pass itself."""
    return o.trace.logits, array(o.plain_cache["unembed.hook_out"][0])


def lens_logits(o: Opened) -> Pair:
    """Every state of the stream, also between attention and feed forward, at every position."""
    names = states(o.trace)
    ours = np.stack([*logits_at(o.model, o.trace, names, range(len(o.ids)))], axis=1)
    read = logit_lens(o.plain, torch.tensor([o.ids]), incl_mid=True, positions=None)
    return ours, array(read.values[:, 0])


def lens_entropy(o: Opened) -> Pair:
    """The entropy of each, in bits."""
    read = logit_lens(o.plain, torch.tensor([o.ids]), incl_mid=True, positions=None)
    return lens(o.model, o.trace).entropy, array(read.readout.entropy[:, 0]) / LN2


def lens_probability(o: Opened) -> Pair:
    """The probability of the answer in each."""
    read = lens_of_answer(o, return_type="probs")
    return lens(o.model, o.trace, o.answer).probability, array(read.values[:, 0, :, 0])


def lens_rank(o: Opened) -> Pair:
    """Its rank in each, from 1."""
    ranks = lens_of_answer(o).rank_trajectory()
    return lens(o.model, o.trace, o.answer).rank, array(ranks[:, 0]) + 1


def lens_divergence(o: Opened) -> Pair:
    """KL(end || row) of each, in bits, of TransformerLens' logarithms of probabilities."""
    tokens = torch.tensor([o.ids])
    read = logit_lens(o.plain, tokens, incl_mid=True, positions=None, return_type="log_probs")
    logs = read.values[:, 0].double()
    found = (logs[-1].exp() * (logs[-1] - logs)).sum(-1) / LN2
    return lens(o.model, o.trace).kl, array(found)


def lens_of_answer(o: Opened, **more: Any) -> Any:
    """TransformerLens' lens of the answer alone."""
    tokens = torch.tensor([o.ids])
    return logit_lens(o.plain, tokens, incl_mid=True, positions=None, targets=o.answer, **more)


def attribution_by_part(o: Opened) -> Pair:
    """Every head, feed-forward layer with its bias, embedding, all biases, the last norm's shift.

    TransformerLens: `logit_attrs` of `get_full_resid_decomposition`; the shift is its `b_U`.
    """
    cache = o.cache(o.folded)
    stack = cache.get_full_resid_decomposition(expand_neurons=False)
    theirs = [*array(cache.logit_attrs(stack, o.answer)[:, 0, -1]), array(o.folded.b_U)[o.answer]]
    account = attribute(o.model, o.trace, o.last, {o.answer: 1.0})
    of = {term.name: term.value for term in account.terms}
    layers, heads = range(o.model.spec.n_layers), range(o.model.spec.n_heads)
    ours = [
        *(of.pop(f"layers.{layer}.heads.{h}") for layer in layers for h in heads),
        *(of.pop(f"layers.{n}.mlp") + of.pop(f"layers.{n}.mlp.bias") for n in layers),
        of.pop("token_embeddings"),
        of.pop("position_embeddings"),
        sum(of.pop(f"layers.{layer}.attn.bias") for layer in layers),
        of.pop("ln_final.shift"),
    ]
    assert not of, of
    return np.array(ours), np.array(theirs)


def attribution_of_two(o: Opened) -> Pair:
    """The same heads for answer - against, at every position.

    TransformerLens: `logit_attrs` of `stack_head_results`.
    """
    cache = o.cache(o.folded)
    found = cache.logit_attrs(cache.stack_head_results(), o.answer, o.against)[:, 0]
    ours = [
        [
            term.value
            for term in attribute(o.model, o.trace, i, wanted(o)).terms
            if term.head is not None
        ]
        for i in range(len(o.ids))
    ]
    return np.array(ours).T, array(found)


def attribution_by_neuron(o: Opened) -> Pair:
    """Every hidden unit of every layer, for answer - against: `stack_neuron_results`."""
    cache = o.cache(o.folded)
    found = attribute(o.model, o.trace, o.last, wanted(o)).found
    layers = range(o.model.spec.n_layers)
    ours = [unit_contributions(o.model, o.trace, found, layer) for layer in layers]
    theirs = cache.logit_attrs(cache.stack_neuron_results(-1), o.answer, o.against)
    return np.concatenate(ours), array(theirs[:, 0, -1])


def attribution_by_source(o: Opened) -> Pair:
    """What every head gives by each token it reads: `logit_attrs` of pattern x value x W_O."""
    cache = o.cache(o.folded)
    found = attribute(o.model, o.trace, o.last, wanted(o)).found
    ours, theirs = [], []
    for layer, block in enumerate(o.folded.blocks):
        weights, said = source_contributions(o.model, o.trace, found, layer)
        ours.append(weights * said)
        pattern = cache["pattern", layer][0, :, -1]  # [H, T]
        written = torch.einsum("htd,hdm->htm", cache["v", layer][0].swapaxes(0, 1), block.attn.W_O)
        stack = (pattern[..., None] * written).flatten(0, 1)[:, None]  # [H*T, 1, d]
        given = cache.logit_attrs(stack, o.answer, o.against, pos_slice=-1)
        theirs.append(array(given).reshape(pattern.shape))
    return np.stack(ours), np.stack(theirs)


def wanted(o: Opened) -> dict[int, float]:
    """The logit of the answer less that of the other."""
    return {o.answer: 1.0, o.against: -1.0}


def detected(o: Opened) -> Pair:
    """Shares of the previous, duplicate and induction token: `detect_head`, measure "mul"."""
    cache = o.cache(o.plain, o.twice).remove_batch_dim()
    weights = patterns(o)
    ours = [similarity(weights, PATTERNS[name](o.twice)) for name in DETECTED]
    return np.stack(ours), np.stack([array(detect(o, name, cache)) for name in DETECTED.values()])


def detect(o: Opened, name: str, cache: Any) -> torch.Tensor:
    """`detect_head` on ids, which by itself takes text alone: [L, H]."""
    given = SimpleNamespace(cfg=o.plain.cfg, to_tokens=lambda ids: ids)
    ids = torch.tensor([o.twice])
    return head_detector.detect_head(given, ids, name, cache=cache)


def stripes(o: Opened) -> Pair:
    """The induction score of TransformerLens' demos: the mean of a diagonal of the pattern."""
    cache, back = o.cache(o.plain, o.twice), len(o.twice) // 2 - 1
    pattern = torch.stack([cache["pattern", layer][0] for layer in range(o.plain.cfg.n_layers)])
    return stripe(patterns(o), back), array(pattern.diagonal(-back, dim1=-2, dim2=-1).mean(-1))


def shares(o: Opened) -> Pair:
    """The shares that `gptscope heads` shows: rows with a target and a choice alone.

    Of TransformerLens are the weights and the patterns that it has.
    """
    cache, tokens = o.cache(o.plain, o.twice), torch.tensor([o.twice])
    theirs = []
    for name in DETECTED.values():
        target = getattr(head_detector, f"get_{name}_detection_pattern")(tokens)
        seen = torch.ones_like(target).tril()
        rows = (target.sum(-1) > 0) & (target.sum(-1) < seen.sum(-1))
        given = [cache["pattern", n][0] for n in range(o.plain.cfg.n_layers)]
        theirs.append([(one * target).sum(-1)[:, rows].mean(-1) for one in given])
    return shown(o), np.stack([array(torch.stack(one)) for one in theirs])


def shown(o: Opened) -> np.ndarray:
    """The three of `gptscope heads` that TransformerLens has a pattern for, [3, L, H]."""
    found = scores(o.model, gptscope.trace(o.model, o.twice, "weights"))
    return np.stack([found.values[SHARES.index(name)] for name in DETECTED])


def compositions(o: Opened) -> Pair:
    """Q-, K- and V-composition of all pairs of heads: `all_composition_scores`."""
    return composed(o, o.folded)


def composed(o: Opened, bridge: Any) -> Pair:
    """gptscope's scores, and those of the model as it was opened; 0 where there is no pair."""
    found = composition(o.model)
    theirs = [array(bridge.all_composition_scores(way).scores) for way in WAYS]
    return np.nan_to_num(np.stack([found.scores[way] for way in WAYS])), np.stack(theirs)


def eigenvalues(o: Opened) -> Pair:
    """The positive share of the eigenvalues of the full OV circuit: of `W_E`, `OV` and `W_U`."""
    found = (o.folded.W_E @ o.folded.OV @ o.folded.W_U).eigenvalues
    return eigen(o.model).eigenvalues, array(found.sum(-1).real / found.abs().sum(-1))


def patterns(o: Opened) -> np.ndarray:
    """The attention weights on the repeated tokens, [L, H, T, T]."""
    trace = gptscope.trace(o.model, o.twice, "weights")
    return np.stack([trace.values["weights", layer] for layer in range(o.model.spec.n_layers)])


def array(values: torch.Tensor) -> np.ndarray:
    """As NumPy has it."""
    return values.detach().numpy()


# What is compared: by which functions, and what TransformerLens has it from.
QUANTITIES: Mapping[str, tuple[Callable[[Opened], Pair], str]] = {
    "logits of the pass": (logits, "`run_with_cache`"),
    "lens: every logit": (lens_logits, "`logit_lens`, also between the parts of a block"),
    "lens: probability of the answer": (lens_probability, "`logit_lens`"),
    "lens: rank of the answer": (lens_rank, "`rank_trajectory`, which counts from 0"),
    "lens: entropy": (lens_entropy, "`logit_lens`, in nats there"),
    "lens: divergence from the end": (lens_divergence, "its logarithms of probabilities"),
    "attribution: every part": (
        attribution_by_part,
        "`logit_attrs` of `get_full_resid_decomposition`, and `b_U`",
    ),
    "attribution: heads, answer - other": (attribution_of_two, "the same of `stack_head_results`"),
    "attribution: hidden units": (attribution_by_neuron, "the same of `stack_neuron_results`"),
    "attribution: tokens that heads read": (
        attribution_by_source,
        "the same of its pattern x value x `W_O`",
    ),
    "heads: shares in all rows": (detected, '`detect_head`, measure "mul"'),
    "heads: shares in rows with a target": (shares, "its `get_*_detection_pattern`"),
    "heads: induction stripe": (stripes, "`pattern.diagonal`, as in its demos"),
    "weights: composition of heads": (compositions, "`all_composition_scores`"),
    "weights: eigenvalues of OV circuits": (eigenvalues, "`(W_E @ OV @ W_U).eigenvalues`"),
}
