import pytest

from gptscope.engine.hook_points import BY_KEY, HOOK_POINTS
from gptscope.engine.keep import matcher
from gptscope.errors import UsageError

N_LAYERS, N_HEADS = 12, 2  # two digits, so that layer 1 is not mistaken for layer 11
EVERYWHERE = [
    (point.key, layer)
    for point in HOOK_POINTS
    for layer in (range(N_LAYERS) if "{l}" in point.name else [None])
]
NORM = ["mean", "variance", "mean_square", "normalized", "out"]
NORMS = ["ln1", "ln1_post", "ln2", "ln2_post"]
MEANS_OUTSIDE = {("embed_norm.mean", None), ("ln_final.mean", None)}
IN_BLOCK = [point.key for point in HOOK_POINTS if "{l}" in point.name]


def kept(*entries):
    wanted = matcher(entries, N_LAYERS, N_HEADS)
    return {at for at in EVERYWHERE if wanted(*at)}


def in_layers(keys, layers=range(N_LAYERS)):
    return {(key, layer) for key in keys for layer in layers}


def test_none_wants_everything():
    wanted = matcher(None, N_LAYERS, N_HEADS)
    assert all(wanted(*at) for at in EVERYWHERE)


def test_nothing_wants_nothing():
    assert kept() == set()


@pytest.mark.parametrize("key", BY_KEY)
def test_a_key_means_all_layers(key):
    assert kept(key) == {at for at in EVERYWHERE if at[0] == key}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("logits", {("logits", None)}),
        ("hook_embed", {("token_embeddings", None)}),
        ("ln_final.out", {("ln_final.out", None)}),
        ("ln1.out", in_layers(["ln1.out"])),
        ("layers.1.attn_out", {("attn_out", 1)}),
        ("layers.11.ln2.mean", {("ln2.mean", 11)}),
        ("blocks.1.hook_attn_out", {("attn_out", 1), ("ln1_post.out", 1)}),
        ("blocks.1.attn.hook_pattern", {("weights", 1)}),
        ("layers.1.heads.0.q", {("q", 1)}),
        ("layers.1.heads.*.q", {("q", 1)}),
        ("layers.1.*", in_layers(IN_BLOCK, [1])),
        ("layers.1*.q", in_layers(["q"], [1, 10, 11])),
        ("layers.*.heads.0.q", in_layers(["q"])),
        ("layers.*.ln1.*", in_layers([f"ln1.{part}" for part in NORM])),
        ("layers.*.ln?.mean", in_layers(["ln1.mean", "ln2.mean"])),
        ("*.mean", in_layers([f"{norm}.mean" for norm in NORMS]) | MEANS_OUTSIDE),
        ("ln_final.*", {(f"ln_final.{part}", None) for part in NORM}),
        ("*embeddings", {(f"{part}embeddings", None) for part in ("token_", "position_", "")}),
        ("*", set(EVERYWHERE)),
    ],
)
def test_entries(entry, expected):
    assert kept(entry) == expected


def test_several_entries_want_all_that_any_of_them_wants():
    assert kept("logits", "layers.2.heads.0.v", "ln1.mean") == (
        {("logits", None), ("v", 2)} | in_layers(["ln1.mean"])
    )


@pytest.mark.parametrize("entry", ["weight", "", "layers", "layers.0", "heads.0.q", "LOGITS", "x*"])
def test_an_entry_that_names_nothing_is_refused(entry):
    with pytest.raises(UsageError, match=rf"no value is called {entry.replace('*', '.')}"):
        matcher([entry], N_LAYERS, N_HEADS)


def test_a_mistyped_entry_is_told_the_nearest():
    with pytest.raises(UsageError, match="no value is called") as fault:
        matcher(["layers.0.mlp_hiden"], N_LAYERS, N_HEADS)
    assert fault.value.hint == "the nearest is layers.0.mlp_hidden"


@pytest.mark.parametrize("entry", ["layers.12.attn_out", "blocks.99.hook_resid_pre"])
def test_a_layer_that_is_not_there_is_refused(entry):
    with pytest.raises(UsageError, match=r"layer \d+ is out of range: .* layers 0 to 11"):
        matcher([entry], N_LAYERS, N_HEADS)


@pytest.mark.parametrize("entry", ["layers.0.heads.2.q", "layers.*.heads.2.q"])
def test_a_head_that_is_not_there_is_refused(entry):
    with pytest.raises(UsageError, match="head 2 is out of range: this one has heads 0 to 1"):
        kept(entry)


def test_a_pattern_of_aliases():
    assert kept("blocks.*.attn.hook_pattern") == in_layers(["weights"])


def test_one_name_in_place_of_a_list():
    wanted = matcher("weights", N_LAYERS, N_HEADS)
    assert wanted("weights", 0)
    assert not wanted("q", 0)


@pytest.mark.parametrize("entry", ["layers.12.*", "blocks.12.attn.*", "layers.12.input"])
def test_a_layer_out_of_range_is_told_so(entry):
    with pytest.raises(UsageError, match="layer 12 is out of range: this one has layers 0 to 11"):
        kept(entry)
