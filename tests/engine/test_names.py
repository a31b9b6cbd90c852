import pytest

from gptscope.engine.names import named
from gptscope.errors import UsageError

SIZES = 12, 4


def found(pattern):
    return [(one.point.key, one.layer, tuple(one.heads)) for one in named(pattern, *SIZES)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("logits", [("logits", None, ())]),
        ("layers.2.mlp_out", [("mlp_out", 2, ())]),
        ("layers.2.heads.1.out", [("out", 2, (1,))]),
        ("layers.10:.mlp_out", [("mlp_out", 10, ()), ("mlp_out", 11, ())]),
        ("layers.1:3.heads.2:.q", [("q", 1, (2, 3)), ("q", 2, (2, 3))]),
        ("layers.:1.heads.:.weights", [("weights", 0, (0, 1, 2, 3))]),
        ("layers.3.heads.?.out", [("out", 3, (0, 1, 2, 3))]),
        ("layers.3.heads.[13].out", [("out", 3, (1, 3))]),
        ("layers.3.heads.*.out", [("out", 3, (0, 1, 2, 3))]),
        ("blocks.3.attn.hook_z", [("out", 3, (0, 1, 2, 3))]),
        ("layers.1*.attn_out", [("attn_out", 1, ()), ("attn_out", 10, ()), ("attn_out", 11, ())]),
        ("blocks.0:2.hook_mlp_out", [("mlp_out", 0, ()), ("mlp_out", 1, ())] * 2),
    ],
)
def test_a_pattern_names_values(pattern, expected):
    one = found(pattern)
    if "hook_mlp_out" in pattern:  # an alias of two: what leaves the part, or its norm
        expected = [
            ("mlp_out", 0, ()),
            ("mlp_out", 1, ()),
            *(("ln2_post.out", i, ()) for i in (0, 1)),
        ]
    assert one == expected


def test_a_key_means_every_layer_and_head():
    assert found("weights") == [("weights", layer, (0, 1, 2, 3)) for layer in range(12)]
    assert found("layers.*.heads.*.weights") == found("weights")


def test_what_was_found_by_its_alias_says_so():
    (one,) = named("blocks.3.attn.hook_z", *SIZES)
    assert one.alias == "blocks.{l}.attn.hook_z"
    (one,) = named("layers.3.heads.0.out", *SIZES)
    assert not one.alias


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("fnord", "no value is called fnord"),
        ("layers.12.mlp_out", "layer 12 is out of range: this one has layers 0 to 11"),
        ("layers.0.heads.4.q", "head 4 is out of range: this one has heads 0 to 3"),
        ("layers.3:3.mlp_out", "layers 3:3 are out of range: there are layers 0 to 11"),
        ("layers.3:99.mlp_out", "layers 3:99 are out of range"),
        ("layers.0.heads.9:.q", "heads 9: are out of range: there are heads 0 to 3"),
        ("layers.0.heads.x.q", "no head is called x"),
        ("layers.*.fnord", "no value is called layers.0.fnord"),
        ("", "no value is called"),
        ("{l}", "no value is called"),
    ],
)
def test_what_names_nothing_says_so(pattern, message):
    with pytest.raises(UsageError, match=message):
        named(pattern, *SIZES)


def test_a_head_that_was_left_out_is_in_the_hint():
    with pytest.raises(UsageError, match="no value is called") as caught:
        named("layers.3.q", *SIZES)
    assert caught.value.hint == "the nearest is layers.3.heads.0.q"
