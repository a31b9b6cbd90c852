"""What both programs make of changed passes: each a pair of arrays, gptscope's first."""

import contextlib
import io
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from transformer_lens import patching

import gptscope
from gptscope.analysis.sweep import (
    KINDS,
    METRICS,
    NOTED,
    Part,
    Paths,
    Setting,
    ablations,
    measured,
    normalised,
    over,
    patches,
    sites,
    taken,
)
from gptscope.engine.hook_points import BY_ALIAS
from tests.golden.transformer_lens.opened import Opened
from tests.golden.transformer_lens.quantities import Pair, array, wanted
from tests.helpers.close import scale

Hook = Callable[..., torch.Tensor]  # a value [1, T, ...], and by name the point where it is
RESID_MID = "hook_resid_mid"
PATCHED = {
    "heads": "get_act_patch_attn_head_out_all_pos",
    "head-pattern": "get_act_patch_attn_head_pattern_all_pos",
    "head-value": "get_act_patch_attn_head_v_all_pos",
    "attn": "get_act_patch_attn_out",
    "mlp": "get_act_patch_mlp_out",
    "resid": "get_act_patch_resid_pre",
}


def logit(tokens: Mapping[int, float]) -> Callable[..., float]:
    """The logits of these tokens, each so many times."""
    return METRICS["logit"].measure(tokens, np.empty(0))


def zeroed(o: Opened) -> Pair:
    """How the answer's logit changes when each head gives 0: `run_with_hooks` on `hook_z`."""
    return ablated(o, "zero", lambda value, head, hook: set_head(value, head, 0))  # noqa: ARG005


def averaged(o: Opened) -> Pair:
    """The same when each head gives its mean over the tokens."""

    def mean(value: torch.Tensor, head: int, hook: Any) -> torch.Tensor:  # noqa: ARG001
        return set_head(value, head, value[:, :, head].mean(1, keepdim=True))

    return ablated(o, "mean", mean)


def set_head(value: torch.Tensor, head: int, new: torch.Tensor | float) -> torch.Tensor:
    """A copy of the value of all heads, one of them replaced."""
    changed = value.clone()
    changed[:, :, head] = new
    return changed


def ablated(o: Opened, replacement: str, change: Hook) -> Pair:
    """The changes of the answer's logit, by layer and head."""
    spec, run = o.model.spec, over(o.ids)
    rows = sites(KINDS["heads"], spec, None)
    lanes = ablations(run, [site for row in rows for site in row], replacement)
    setting = Setting(o.model, o.last, logit({o.answer: 1.0}))
    before, *after = measured(setting, [run, *lanes], len(o.ids))
    theirs = [
        logit_with(o, f"blocks.{layer}.attn.hook_z", partial(change, head=h))
        for layer, h in product(range(spec.n_layers), range(spec.n_heads))
    ]
    return np.array(after) - before, np.array(theirs) - float(end(o.plain, o.ids)[o.answer])


def logit_with(o: Opened, name: str, hook: Hook) -> float:
    """The answer's logit with a hook."""
    return float(end(o.plain, o.ids, [(name, hook)])[o.answer])


def end(bridge: Any, ids: list[int], hooks: Any = ()) -> torch.Tensor:
    """The logits after the last token, with hooks."""
    with torch.no_grad():
        return bridge.run_with_hooks(torch.tensor([ids]), fwd_hooks=list(hooks))[0, -1]


def patched(o: Opened, what: str) -> Pair:
    """Patches of a kind from the clean into the corrupt pass and back: 0 corrupt, 1 clean."""
    pairs = [one_way(o, what, o.corrupt, o.ids), one_way(o, what, o.ids, o.corrupt)]
    ours, theirs = zip(*pairs, strict=True)
    return np.stack(ours), np.stack(theirs)


def one_way(o: Opened, what: str, into: list[int], source: list[int]) -> Pair:
    """Each value of a kind taken from one pass into another; 0 is the second, 1 the first."""
    kind, tokens = KINDS[what], range(len(o.ids))
    rows = sites(kind, o.model.spec, None if kind.by == "head" else tokens)[: o.model.spec.n_layers]
    run, other = over(into), over(source, kind.key)
    lanes = patches(run, other, [site for row in rows for site in row])
    setting = Setting(o.model, o.last, logit(wanted(o)))
    low, high, *values = measured(setting, [run, other, *lanes], len(into))
    with quiet():
        theirs = getattr(patching, PATCHED[what])(
            o.plain, torch.tensor([into]), o.cache(o.plain, source), lambda logits: ask(o, logits)
        )
    return normalised(np.array(values), low, high).reshape(theirs.shape), between(
        o, array(theirs), into, source
    )


def ask(o: Opened, logits: torch.Tensor) -> torch.Tensor:
    """The answer's logit less the other's, after the last token."""
    return logits[0, -1, o.answer] - logits[0, -1, o.against]


def between(o: Opened, values: np.ndarray, into: list[int], source: list[int]) -> np.ndarray:
    """Their numbers, 0 as in one pass and 1 as in the other."""
    low, high = (float(ask(o, end(o.plain, ids)[None, None])) for ids in (into, source))
    return (values - low) / (high - low)


def paths(o: Opened) -> Pair:
    """What each head tells the q, k and v of each later one: `get_act_patch_direct_path`.

    The feed-forward layers between are frozen, as they are there.
    """
    spec, pairs = o.model.spec, []
    run, other = over(o.corrupt, *NOTED), over(o.ids, *NOTED)
    for reads, a, g, b, h in product("qkv", *(2 * (range(spec.n_layers), range(spec.n_heads)))):
        if a < b:
            pairs.append((Part("head", a, g), Part("head", b, h, reads)))
    way = Paths(spec, run, lambda site: taken(site, other), (other,), freeze_mlp=True)
    setting = Setting(o.model, o.last, logit(wanted(o)))
    low, high, *values = measured(setting, [run, other, *way.lanes(pairs)], len(o.ids))
    caches = o.cache(o.plain), o.cache(o.plain, o.corrupt)
    with quiet():
        told = {
            reads: patching.get_act_patch_direct_path_all_sources(
                o.plain, torch.tensor([o.corrupt]), *caches, lambda x: ask(o, x), reads
            )
            for reads in "qkv"
        }
    theirs = [float(told[r.reads][s.layer, s.head, r.layer, r.head]) for s, r in pairs]
    ours = normalised(np.array(values), low, high)
    return ours, between(o, np.array(theirs), o.corrupt, o.ids)


def quiet() -> contextlib.AbstractContextManager[Any]:
    """Without TransformerLens' progress bars."""
    return contextlib.redirect_stderr(io.StringIO())


def bent(value: Any) -> Any:
    """Another value: each number times one of its own along the first and the last axis."""
    first, *between, last = value.shape
    steps = np.add.outer(0.05 * np.arange(first), 0.6 + 0.1 * np.cos(np.arange(last)))
    steps = steps.reshape(first, *(1 for _ in between), last).astype(np.float32)
    return value * (steps if isinstance(value, np.ndarray) else torch.from_numpy(steps))


def aliases(o: Opened) -> list[str]:
    """The names that both have for a value of the pass, layer by layer."""
    found = []
    for alias in BY_ALIAS:
        for layer in range(o.model.spec.n_layers if "{l}" in alias else 1):
            name = alias.format(l=layer)
            with contextlib.suppress(gptscope.UsageError):
                found += [name] * (o.trace[name].size > 0 and name in set(o.plain_cache))
    return found


def edited(o: Opened) -> Pair:
    """All logits after a function has changed one named value, for every name."""
    ours, theirs = [], []
    for name in aliases(o):
        ours.append(gptscope.trace(o.model, o.ids, "logits", [(name, bent)]).logits)
        theirs.append(array(every_logit(o, where_it_counts(o, name))))
    return np.stack(ours), np.stack(theirs)


def every_logit(o: Opened, hook: tuple[str, Hook]) -> torch.Tensor:
    """The logits after every token, with a hook."""
    with torch.no_grad():
        return o.plain.run_with_hooks(torch.tensor([o.ids]), fwd_hooks=[hook])[0]


def where_it_counts(o: Opened, name: str) -> tuple[str, Hook]:
    """The hook that changes a value for all that read it.

    An edit of TransformerLens' `hook_resid_mid` is read by the feed-forward layer alone: there, it
    is the input of the second norm. So what is added goes to what attention adds.
    """
    if not name.endswith(RESID_MID):
        return name, lambda value, hook: bent(value[0])[None]  # noqa: ARG005
    stream = o.plain_cache[name][0]
    more = bent(stream) - stream
    return name.replace(RESID_MID, "hook_attn_out"), lambda value, hook: value + more  # noqa: ARG005


def named(o: Opened) -> Pair:
    """Every value that has a name there, as a share of its largest number if that is above 1."""
    ours, theirs = [], []
    for name in aliases(o):
        value = array(o.plain_cache[name][0])
        assert value.shape == o.trace[name].shape, name
        ours.append((o.trace[name] / scale(value)).ravel())
        theirs.append((value / scale(value)).ravel())
    return np.concatenate(ours), np.concatenate(theirs)


# As `QUANTITIES`.
CHANGES: Mapping[str, tuple[Callable[[Opened], Pair], str]] = {
    "values by TransformerLens' name": (named, "`cache[name]`, every name in every layer"),
    "edits by TransformerLens' name": (
        edited,
        "`run_with_hooks` with the same function, every name in every layer",
    ),
    "sweep: each head zeroed": (zeroed, "`run_with_hooks` on `hook_z`"),
    "sweep: each head's mean": (averaged, "`run_with_hooks` on `hook_z`"),
    **{
        f"patching: {what}": (partial(patched, what=what), f"`{name}`")
        for what, name in PATCHED.items()
    },
    "patching: paths from head to head": (paths, "`get_act_patch_direct_path_all_sources`"),
}
