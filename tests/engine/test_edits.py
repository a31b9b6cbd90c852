import re

import numpy as np
import pytest
from safetensors.numpy import save_file

import gptscope
from gptscope.engine.changes import CHANGES
from gptscope.engine.edits import Edits
from gptscope.errors import GptscopeError, UsageError
from tests.helpers.micro import micro_model, sizes
from tests.helpers.variants import rich, shared_keys

IDS = [3, 1, 4, 1, 5]
OTHER = [2, 7, 1, 8, 2]


@pytest.fixture(scope="module")
def model():
    return micro_model(sizes(n_layers=3, n_heads=2))


@pytest.fixture(scope="module")
def plain(model):
    return gptscope.trace(model, IDS)


def edited(model, *edits, **more):
    return gptscope.trace(model, IDS, edits=edits, **more)


def test_zero_a_number_and_a_factor(model, plain):
    name = "layers.1.heads.1.out"
    assert not edited(model, f"{name}=zero")[name].any()
    assert (edited(model, f"{name}=-1.5")[name] == -1.5).all()
    np.testing.assert_array_equal(edited(model, f"{name}=*-2")[name], plain[name] * -2)
    np.testing.assert_array_equal(
        edited(model, f"{name}=+0.5")[name], plain[name] + np.float32(0.5)
    )
    for text in ("zero", "-1.5", "*-2", "+0.5"):
        made = edited(model, f"{name}={text}")
        np.testing.assert_array_equal(made["layers.1.heads.0.out"], plain["layers.1.heads.0.out"])
        assert (made.logits != plain.logits).any()


def test_the_mean_over_tokens(model, plain):
    name = "layers.0.mlp_out"
    mean = plain[name].mean(0)
    np.testing.assert_allclose(
        edited(model, f"{name}=mean")[name], np.tile(mean, (5, 1)), rtol=1e-6
    )
    made = edited(model, f"{name}[2]=mean")[name]
    np.testing.assert_allclose(made[2], mean, rtol=1e-6)
    np.testing.assert_array_equal(made[[0, 1, 3, 4]], plain[name][[0, 1, 3, 4]])


@pytest.mark.parametrize(
    ("index", "where"),
    [
        ("4", np.s_[4]),
        ("-1", np.s_[-1]),
        (":,3", np.s_[:, 3]),
        ("1:3,-1", np.s_[1:3, -1]),
        ("::2", np.s_[::2]),
        ("2, 0:2", np.s_[2, 0:2]),
    ],
)
def test_an_index_is_that_of_numpy(model, plain, index, where):
    expected = plain["layers.1.attn_out"].copy()
    expected[where] = 7
    made = edited(model, f"layers.1.attn_out[{index}]=7")["layers.1.attn_out"]
    np.testing.assert_array_equal(made, expected)


def test_several_edits_apply_in_order(model):
    name = "layers.1.attn_out"
    one = edited(model, f"{name}=3", f"{name}=*2", f"{name}[0]=+1")[name]
    assert (one[0] == 7).all()
    assert (one[1:] == 6).all()
    other = edited(model, f"{name}=*2", f"{name}=3")[name]
    assert (other == 3).all()


def test_patching_takes_the_value_of_another_pass(model):
    there = gptscope.trace(model, OTHER)
    made = edited(model, f"layers.1.output=from:ids:{','.join(map(str, OTHER))}")
    np.testing.assert_array_equal(made["layers.1.output"], there["layers.1.output"])
    np.testing.assert_array_equal(made.logits, there.logits)
    made = edited(model, "layers.1.output[-1]=from:ids:2,7,1")  # its own last token
    np.testing.assert_array_equal(made["layers.1.output"][4], there["layers.1.output"][2])
    made = edited(model, "layers.1.output[4]=from[2]:ids:2,7,1")
    np.testing.assert_array_equal(made["layers.1.output"][4], there["layers.1.output"][2])


def test_patching_from_a_text():
    tiny = gptscope.load("tiny")
    ids = tiny.tokenizer.encode("Lily wanted to play with her")
    other = gptscope.trace(tiny, tiny.tokenizer.encode("Tom likes to eat with him"))
    made = gptscope.trace(tiny, ids, edits=["layers.2.output[-1]=from:Tom likes to eat with him"])
    np.testing.assert_array_equal(made["layers.2.output"][-1], other["layers.2.output"][-1])
    text = "layers.2.output[0]=from:Tom = [4] *2"  # of a text, no sign means anything
    assert gptscope.trace(tiny, ids, edits=[text]).edits == (text,)


def test_a_function_an_array_and_a_number(model, plain):
    name = "layers.0.heads.1.q"

    def halved(x):
        return x / 2

    made = edited(model, (name, halved))
    np.testing.assert_array_equal(made[name], plain[name] / 2)
    assert made.edits == (f"{name}=halved",)
    row = np.arange(3)
    np.testing.assert_array_equal(edited(model, (f"{name}[2]", row))[name][2], row)
    assert (edited(model, (name, 4))[name] == 4).all()


def test_a_function_may_not_change_what_it_is_given(model, plain):
    def in_place(x):
        x *= 0
        return x

    made = edited(model, ("layers.1.input", in_place))
    np.testing.assert_array_equal(made["layers.0.output"], plain["layers.0.output"])


@pytest.mark.parametrize("form", ["npz", "npy", "safetensors"])
def test_steering_adds_an_array_of_a_file(model, plain, tmp_path, form):
    direction = np.linspace(-1, 1, 6, dtype="float32")
    file = tmp_path / f"a*b.{form}"
    save(file, direction)
    made = edited(model, f"layers.0.output=+{file}*2.5")["layers.0.output"]
    np.testing.assert_allclose(made, plain["layers.0.output"] + 2.5 * direction, atol=1e-6)
    made = edited(model, f"layers.0.output[1]=+{file}")["layers.0.output"]
    np.testing.assert_allclose(made[1], plain["layers.0.output"][1] + direction, atol=1e-6)
    np.testing.assert_array_equal(made[2:], plain["layers.0.output"][2:])


def save(file, direction):
    if file.suffix == ".safetensors":
        save_file({"direction": direction, "more": np.zeros(2)}, file)
    elif file.suffix == ".npz":
        np.savez(file, direction=direction, more=np.array("words"))
    else:
        np.save(file, direction)


def test_freezing_takes_the_value_of_a_file(model, plain, tmp_path):
    there = gptscope.trace(model, OTHER)
    file = tmp_path / "trace.npz"
    np.savez(file, **{name: there[name] for name in there.names()})
    made = edited(model, f"layers.1.heads.*.weights=freeze:{file}")
    for head in range(2):
        name = f"layers.1.heads.{head}.weights"
        np.testing.assert_array_equal(made[name], there[name])
    np.testing.assert_array_equal(made["layers.1.heads.0.v"], plain["layers.1.heads.0.v"])
    made = edited(model, f"blocks.1.attn.hook_z[3]=freeze:{file}")
    np.testing.assert_array_equal(made["blocks.1.attn.hook_z"][3], there["blocks.1.attn.hook_z"][3])


def test_an_alias_lies_as_in_transformer_lens(model, plain):
    by_name = edited(model, "layers.1.heads.1.out[2]=0")
    by_alias = edited(model, "blocks.1.attn.hook_z[2,1]=0")
    assert by_name.logits.tobytes() == by_alias.logits.tobytes()
    made = edited(model, "blocks.1.ln1.hook_scale=*2")
    np.testing.assert_allclose(
        made["layers.1.ln1.normalized"], plain["layers.1.ln1.normalized"] / 2, rtol=1e-4, atol=1e-6
    )


def test_an_alias_of_several_means_the_one_that_the_model_has():
    model = rich(micro_model(sizes(n_heads=2, d_head=4)))
    made = edited(model, "blocks.0.hook_attn_out=7")
    assert (made["layers.0.ln1_post.out"] == 7).all()
    assert (made["layers.0.attn_out"] != 7).all()
    made = edited(model, "blocks.*.attn.hook_q=7")
    assert (made["layers.0.heads.1.q_before_norm"] == 7).all()
    assert (made["layers.0.heads.1.q"] != 7).any()


def test_keys_that_heads_share_change_once():
    model = shared_keys(micro_model(sizes(n_heads=2)))
    plain = gptscope.trace(model, IDS)
    made = edited(model, "layers.0.heads.*.k=*2")
    for head in range(2):
        name = f"layers.0.heads.{head}.k"
        np.testing.assert_array_equal(made[name], plain[name] * 2)


def test_a_pair_can_be_hidden(model):
    made = edited(model, "layers.0.heads.0.scaled_masked[3,1]=-inf")
    weights = made["layers.0.heads.0.weights"]
    assert weights[3, 1] == 0
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-6)


def test_the_trace_knows_its_edits(model, plain):
    assert plain.edits == ()
    assert edited(model, "logits=*2", "embeddings=zero").edits == ("logits=*2", "embeddings=zero")


def test_stars_skip_what_a_layer_lacks(model):
    assert edited(model, "layers.*=*1").logits.shape == (5, 13)


BAD = {
    "layers.1.mlp_out": "'layers.1.mlp_out' is no edit",
    "=zero": "'=zero' is no edit",
    "layers.1.mlp_out=": "is no edit",
    "layers.1.mlp_out=fnord": "'fnord' is no change: one is written zero, mean, ",
    "layers.1.mlp_out=nan": "'nan' is no change",
    "layers.1.mlp_out=-inf": "layers.1.mlp_out cannot be infinite: a score or a logit alone can",
    "layers.1.heads.0.weights=-inf": "weights cannot be infinite",
    "fnord=zero": "no value is called fnord",
    "layers.9.mlp_out=zero": "layer 9 is out of range",
    "layers.1.heads.9.out=zero": "head 9 is out of range",
    "layers.1.mlp_out[5]=zero": "token 5 is out of range: this one has tokens 0 to 4",
    "layers.1.mlp_out[0,6]=zero": "dimension 6 is out of range",
    "layers.1.mlp_act[:,10]=zero": "unit 10 is out of range: this one has units 0 to 9",
    "logits[:,13]=zero": "token id 13 is out of range",
    "layers.1.mlp_out[0,0,0]=zero": "the value has 2 axes",
    "layers.1.mlp_out[3:3]=zero": "the slice holds nothing",
    "layers.1.mlp_out[1:9]=zero": "token 9 is out of range",
    "layers.1.mlp_out[::0]=zero": "steps of 0",
    "layers.1.mlp_out[]=zero": r"\[\] is no index",
    "layers.1.mlp_out[a]=zero": r"\[a\] is no index",
    "layers.1.mlp_gate=zero": "mlp_gate cannot be changed: this model's hidden units have no gates",
    "layers.1.heads.0.weights=mean": "has no mean over tokens",
    "layers.1.mlp_out=from:ids:1,2": "2 x 6 does not fit where there is 5 x 6",
    "layers.1.mlp_out=from:ids:1": "1 x 6 does not fit where there is 5 x 6",
    "layers.1.heads.0.weights=from:ids:1": "1 x 1 does not fit where there is 5 x 5",
    "layers.1.mlp_out[1:]=from:ids:1,2": "1 x 6 does not fit where there is 4 x 6",
    "layers.1.mlp_out[0]=from[4]:ids:1,2": "token 4 is out of range",
    "layers.1.mlp_out=from:ids:1,x": "ids takes whole numbers",
    "layers.1.mlp_out=from:ids:99": "token id 99 is outside the vocabulary",
}


@pytest.mark.parametrize("text", BAD)
def test_what_cannot_be_done_is_one_sentence(model, text):
    with pytest.raises(UsageError, match=BAD[text]):
        edited(model, text)


def test_what_comes_after_the_last_kept_value_is_read_as_well(model):
    with pytest.raises(UsageError, match="token 5 is out of range"):
        edited(model, "layers.2.mlp_out[5]=zero", keep="embeddings")


def test_without_a_tokenizer_a_text_is_no_source(model):
    with pytest.raises(UsageError, match="cannot read 'a text'"):
        edited(model, "layers.1.mlp_out=from:a text")


@pytest.mark.parametrize("shape", [(5,), (6, 5), (1, 5, 6)])
def test_a_shape_that_does_not_fit(model, shape):
    with pytest.raises(UsageError, match="does not fit where there is 5 x 6"):
        edited(model, ("layers.1.mlp_out", np.zeros(shape)))
    with pytest.raises(UsageError, match="does not fit where there is 5 x 6"):
        edited(model, ("layers.1.mlp_out", lambda _: np.zeros(shape)))


def test_files_that_cannot_be_used(model, tmp_path):
    broken, other = tmp_path / "broken.npz", tmp_path / "other.npz"
    broken.write_text("no zip")
    np.savez(other, one=np.zeros(6), two=np.zeros(6))
    np.savez(tmp_path / "pickled.npz", direction=np.array([object()]))
    np.savez(tmp_path / "short.npz", direction=np.zeros(5))
    cases = {
        f"+{tmp_path}/none.npz": "none.npz cannot be read: No such file",
        f"+{broken}": "broken.npz cannot be read: it is no npz, npy or safetensors",
        f"+{tmp_path}/pickled.npz": "pickled.npz cannot be read",
        f"+{other}": "other.npz holds neither layers.1.mlp_out nor direction",
        f"+{tmp_path}/short.npz": "5 does not fit where there is 5 x 6",
        f"freeze:{other}": "other.npz does not hold layers.1.mlp_out",
        f"freeze:{tmp_path}": "cannot be read: Is a directory",
    }
    for change, message in cases.items():
        with pytest.raises(GptscopeError, match=message):
            edited(model, f"layers.1.mlp_out={change}")


def test_which_edits_hold_for_a_token_whatever_comes_after(model):
    def by_row(*edits):
        return Edits(model, edits).by_row

    assert by_row()
    assert by_row("layers.1.mlp_out=zero", "layers.*.mlp_act[:,3]=*2")
    assert not by_row("layers.1.mlp_out[2]=zero")
    assert not by_row("layers.1.mlp_out=mean")
    assert not by_row("layers.1.heads.0.weights=*2")
    assert not by_row("layers.1.mlp_out=zero", "layers.1.mlp_out=from:ids:1")
    assert not by_row(("layers.1.mlp_out", lambda x: x))


def test_every_way_to_write_a_change_is_read(model, tmp_path):
    np.savez(tmp_path / "FILE", direction=np.zeros(6), **{"layers.1.mlp_out": np.zeros((5, 6))})
    for form in CHANGES:
        written = form.written.replace("FILE", f"{tmp_path}/FILE.npz").replace(
            "TEXT", "ids:3,1,4,1,5"
        )
        assert re.fullmatch(form.pattern, written)
        assert edited(model, f"layers.1.mlp_out={written}").edits
