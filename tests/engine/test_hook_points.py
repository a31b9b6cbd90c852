import re

import pytest

import gptscope
from gptscope.engine.hook_points import BY_ALIAS, BY_KEY, BY_NAME, HOOK_POINTS, parse
from gptscope.errors import UsageError
from tests.helpers.folders import CASES, GOLDEN
from tests.helpers.variants import rich, rms_norm

IDS = [0, 1, 2, 3, 1]
RICH = {"rich": rich, "rich-rms": lambda model: rms_norm(rich(model))}
# As TransformerLens has them, without the batch.
AXES_THERE = {
    "hook_embed": "T d",
    "hook_pos_embed": "T d",
    "blocks.{l}.hook_resid_pre": "T d",
    "blocks.{l}.ln1.hook_scale": "T 1",
    "blocks.{l}.ln1.hook_normalized": "T d",
    "blocks.{l}.attn.hook_q": "T H d_h",
    "blocks.{l}.attn.hook_k": "T G d_h",
    "blocks.{l}.attn.hook_v": "T G d_h",
    "blocks.{l}.attn.hook_rot_q": "T H d_h",
    "blocks.{l}.attn.hook_rot_k": "T G d_h",
    "blocks.{l}.attn.hook_attn_scores": "H T S",
    "blocks.{l}.attn.hook_pattern": "H T S",
    "blocks.{l}.attn.hook_z": "T H d_h",
    "blocks.{l}.hook_attn_out": "T d",
    "blocks.{l}.ln1_post.hook_scale": "T 1",
    "blocks.{l}.ln1_post.hook_normalized": "T d",
    "blocks.{l}.hook_resid_mid": "T d",
    "blocks.{l}.ln2.hook_scale": "T 1",
    "blocks.{l}.ln2.hook_normalized": "T d",
    "blocks.{l}.mlp.hook_pre": "T F",
    "blocks.{l}.mlp.hook_pre_linear": "T F",
    "blocks.{l}.mlp.hook_post": "T F",
    "blocks.{l}.hook_mlp_out": "T d",
    "blocks.{l}.ln2_post.hook_scale": "T 1",
    "blocks.{l}.ln2_post.hook_normalized": "T d",
    "blocks.{l}.hook_resid_post": "T d",
    "ln_final.hook_scale": "T 1",
    "ln_final.hook_normalized": "T d",
}


def sizes_of(axes, spec, n_tokens):
    letters = {
        "T": n_tokens,
        "S": n_tokens,
        "d": spec.d_model,
        "H": spec.n_heads,
        "G": spec.n_kv_heads,
        "d_h": spec.d_head,
        "H*d_h": spec.n_heads * spec.d_head,
        "F": spec.d_ff,
        "V": spec.n_vocab,
        "1": 1,
    }
    return tuple(letters[letter] for letter in axes.split())


@pytest.fixture(scope="module", params=[*CASES, *RICH])
def model(request, micro):
    name = request.param
    return RICH[name](micro) if name in RICH else gptscope.load(GOLDEN / name)


@pytest.fixture(scope="module")
def trace(model):
    return gptscope.trace(model, IDS)


def full(name, layer, head=0):
    return name.format(l=layer, h=head)


def test_names_keys_and_aliases_are_unique():
    assert len(BY_NAME) == len(BY_KEY) == len(HOOK_POINTS)
    assert not BY_NAME.keys() & BY_ALIAS.keys()


def test_every_point_says_what_it_is():
    assert all(point.meaning and point.axes for point in HOOK_POINTS)
    assert {BY_KEY[key].per_head for key in ("q", "k", "v", "weights", "out")} == {True}
    assert {BY_KEY[key].per_head for key in ("ln1.out", "attn_concat", "logits")} == {False}


@pytest.mark.parametrize("name", ["q", "ln1.out", "ln_final.out", "attn_out", "token_embeddings"])
def test_a_key_is_the_name_without_layer_and_head(name):
    assert re.sub(r"layers\.\{l\}\.(heads\.\{h\}\.)?", "", BY_KEY[name].name) == name


def lacking(model):
    # What a model cannot show, by the arrays that it does not have.
    block, spec = model.blocks[0], model.spec
    attention, gated = block.attention, block.mlp.gate is not None
    rms = spec.norm == "rms_norm"
    there = {
        "position_embeddings": model.position_table is not None,
        "embed_norm.": model.embed_norm is not None,
        "_before_norm": attention.q_norm is not None,
        "_before_rope": attention.turning is not None,
        "ln1_post.": block.ln1_post is not None,
        "ln2_post.": block.ln2_post is not None,
        "ln_final.": model.ln_final is not None,
        ".mean_square": rms,
        ".mean ": not rms,
        ".variance": not rms,
        "mlp_hidden": not gated,
        "mlp_gate": gated,
        "mlp_up": gated,
        "logits_before_cap": spec.logit_cap is not None,
    }
    absent = [part for part, is_there in there.items() if not is_there]
    return {p.name for p in HOOK_POINTS if any(part in f"{p.name} " for part in absent)}


def test_the_table_has_just_the_names_of_a_run(trace, model):
    spec, expected, missing = trace.spec, set(), lacking(model)
    for point in HOOK_POINTS:
        layers, heads = range(spec.n_layers), range(spec.n_heads)
        if point.name not in missing:
            expected |= {full(point.name, layer, h) for layer in layers for h in heads}
    assert set(trace.names()) == expected
    assert len(trace.names()) == len(expected)


@pytest.mark.parametrize("point", HOOK_POINTS, ids=lambda point: point.key)
def test_every_value_has_the_axes_of_the_table(trace, model, point):
    if point.name in lacking(model):
        return
    expected = sizes_of(point.axes, trace.spec, len(IDS))
    for layer in range(trace.spec.n_layers):
        for h in range(trace.spec.n_heads):
            assert trace[full(point.name, layer, h)].shape == expected


def test_every_alias_is_checked_here():
    assert AXES_THERE.keys() == BY_ALIAS.keys()


@pytest.mark.parametrize("alias", BY_ALIAS)
def test_every_alias_has_the_axes_of_transformer_lens(trace, model, alias):
    if all(point.name in lacking(model) for point in BY_ALIAS[alias]):
        return
    expected = sizes_of(AXES_THERE[alias], trace.spec, len(IDS))
    for layer in range(trace.spec.n_layers):
        assert trace[full(alias, layer)].shape == expected


@pytest.mark.parametrize("name", [*BY_NAME, *BY_ALIAS])
def test_every_name_is_parsed(name):
    address = parse(name.format(l=10, h=11))
    assert address.layer == (10 if "{l}" in name else None)
    assert address.head == (11 if "{h}" in name else None)
    assert address.by_alias == (name in BY_ALIAS)
    assert address.candidates == BY_ALIAS.get(name, ())
    assert address.point == (address.candidates or (BY_NAME.get(name),))[0]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "weights",
        "layers",
        "layers.0",
        "layers.0.",
        "layers.x.input",
        "layers.-1.input",
        "layers.\u0663.input",
        "layers.0.heads.0",
        "layers.0.heads.q",
        "layers.0.heads.0.q.0",
        "xlayers.0.input",
        "blocks.0.input",
        "layers.0.hook_resid_pre",
        "layers.0.input\n",
        " logits",
        "Logits",
    ],
)
def test_what_names_nothing_is_refused(name):
    with pytest.raises(UsageError, match=f"^no value is called {re.escape(name)}$"):
        parse(name)


def test_the_nearest_name_is_told():
    for wrong, near in [
        ("logit", "logits"),
        ("layers.0.heads.0.weight", "layers.0.heads.0.weights"),
        ("blocks.0.attn.hook_patern", "blocks.0.attn.hook_pattern"),
    ]:
        with pytest.raises(UsageError, match="no value is called") as fault:
            parse(wrong)
        assert fault.value.hint == f"the nearest is {near}"
    with pytest.raises(UsageError, match="no value is called") as fault:
        parse("qqqqqqqqqqqqqqqqqqqqqqqqqqqqq")
    assert fault.value.hint is None


@pytest.mark.parametrize(
    "name",
    ["layers.{l}.input", "layers.0.heads.{h}.q", "layers.{l}.heads.0.q", "blocks.{l}.attn.hook_q"],
)
def test_letters_in_the_place_of_numbers_are_refused(name):
    with pytest.raises(UsageError, match="no value is called"):
        parse(name)


def test_a_layer_of_many_digits_is_out_of_range(micro):
    with pytest.raises(UsageError, match=r"out of range|no value"):
        gptscope.trace(micro, [1])[f"layers.{'9' * 5000}.input"]
