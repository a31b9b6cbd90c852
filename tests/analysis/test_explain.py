# Every number of every model is taken apart, and must add up again.

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

import gptscope
from gptscope.analysis.explain import EXPLAINERS, explain
from gptscope.analysis.explain.address import read
from gptscope.analysis.explain.records import Softmax, Step, Sum, Term
from gptscope.engine.hook_points import BY_KEY
from gptscope.engine.sampling import Sampling
from gptscope.errors import UsageError
from tests.helpers.folders import CASES, GOLDEN, ids_of
from tests.helpers.micro import models_and_ids

ALLOWED = {"float32": 2e-5, "float64": 1e-10}


def near(a, b, dtype):
    if np.isfinite(b):
        assert abs(a - b) <= ALLOWED[str(dtype)] * max(1, abs(b)), (a, b)
    else:
        assert a == b


def adds_up(made, dtype):
    """Every record from those before it, and the last one to the number."""
    seen = {}
    for part in made.parts:
        match part:
            case Sum():
                sum_adds_up(part, dtype)
                seen[part.name] = part.value
            case Softmax():
                softmax_adds_up(part)
                near(part.scores[part.at], seen.get("masked", seen["scaled"]), dtype)
            case Step():
                step_adds_up(part, seen)
                seen[part.name] = part.value
    near(made.computed, made.value, dtype)
    assert made.computed == made.parts[-1].value


def sum_adds_up(part, dtype):
    for term in part.terms:
        if term.factors:
            near(math.prod(term.factors), term.value, "float64")
    near(part.value, sum(term.value for term in part.terms), "float64")
    if part.held is not None:
        near(part.value, part.held, dtype)
        near(part.remainder, part.held - part.value, "float64")


def softmax_adds_up(part):
    powers = np.exp(part.scores - part.scores.max())
    np.testing.assert_allclose(part.exponentials, powers)
    np.testing.assert_allclose(part.shares, powers / powers.sum())
    assert part.maximum == part.scores.max()
    near(part.total, powers.sum(), "float64")
    assert part.value == part.shares[part.at]


def step_adds_up(part, seen):
    assert not math.isnan(part.value)
    rule = over if part.formula.startswith("sum / ") else RULES.get(part.name)
    if " cos" in part.formula:
        rule = turned
    if part.name.startswith("after top"):
        rule = after
    if rule:
        near(part.value, rule(seen, part.formula), "float64")


def turned(seen, formula):
    a, b, cos, sin = (seen[key] for key in ("a", "b", "cos", "sin"))
    return {"a cos - b sin": a * cos - b * sin, "a sin + b cos": a * sin + b * cos}[formula]


def exponential(seen, _):
    return math.exp(seen.get("divided", seen["logit"]) - seen["maximum"])


def after(seen, formula):
    if formula == "not among them":
        return 0
    *_, (_, before), (_, kept) = seen.items()
    return before / kept


def over(seen, formula):
    return seen["sum"] / int(formula.removeprefix("sum / "))


def normalised(seen, _):
    size = seen.get("variance", seen.get("mean square"))
    return (seen["x"] - seen.get("mean", 0)) / math.sqrt(size + seen["eps"])


RULES = {  # the start of a step's name -> its value, from the steps before
    "scaled": lambda seen, _: seen["score"] * seen["scale"],
    "normalized": normalised,
    "out": lambda seen, _: seen["normalized"] * seen["gain"] + seen.get("shift", 0),
    "cos": lambda seen, _: math.cos(seen["angle"]),
    "sin": lambda seen, _: math.sin(seen["angle"]),
    "exponential": exponential,
    "probability": lambda seen, _: seen["exponential"] / seen["sum"],
}


@given(models_and_ids(), st.data())
def test_any_number_of_any_pass_adds_up(model_and_ids, data):
    model, ids = model_and_ids
    trace = gptscope.trace(model, ids)
    name = data.draw(st.sampled_from(trace.names()))
    value = trace[name]
    at = tuple(data.draw(st.integers(-n, n - 1)) for n in value.shape)
    made = explain(model, trace, f"{name}[{','.join(map(str, at))}]")
    assert made.value == value[at]
    adds_up(made, model.dtype)


@given(
    models_and_ids(),
    st.data(),
    st.builds(
        Sampling,
        st.just(0.0) | st.floats(0.1, 4),
        st.none() | st.integers(1, 45),
        st.none() | st.floats(0.01, 1),
    ),
)
def test_any_probability_is_what_a_draw_would_use(model_and_ids, data, how):
    model, ids = model_and_ids
    trace = gptscope.trace(model, ids)
    t = data.draw(st.integers(0, len(ids) - 1))
    v = data.draw(st.integers(0, model.spec.n_vocab - 1))
    made = explain(model, trace, f"probabilities[{t},{v}]", how)
    expected = gptscope.probabilities(trace.logits[t], how.temperature, how.top_k, how.top_p)[v]
    np.testing.assert_allclose([made.value, made.computed], expected, rtol=1e-9)
    adds_up(made, "float64")


@pytest.fixture(scope="module", params=CASES)
def case(request):
    model = gptscope.load(GOLDEN / request.param, dtype="float64")
    golden = load_file(GOLDEN / request.param / "trace.safetensors")
    return model, gptscope.trace(model, ids_of(request.param)), golden


def test_every_golden_value_is_reached(case):
    # The expected numbers are those of the independent implementation, not the engine's.
    model, trace, golden = case
    rng = np.random.default_rng(4)
    names = [name for name in golden if name != "ids"]
    for name in names:
        at = [int(rng.integers(n)) for n in golden[name].shape]
        made = explain(model, trace, f"{name}[{','.join(map(str, at))}]")
        expected = golden[name][tuple(at)]
        near(made.computed, expected, "float64")
        adds_up(made, "float64")


def test_every_value_has_an_explainer():
    assert set(EXPLAINERS) == set(BY_KEY)


@pytest.fixture(scope="module")
def tiny_trace(tiny):
    return gptscope.trace(tiny, tiny.tokenizer.encode("Lily wanted to play with her"))


def explained(tiny, tiny_trace, address, *how):
    return explain(tiny, tiny_trace, address, Sampling(*how))


def test_a_weight_goes_through_every_stage(tiny, tiny_trace):
    made = explained(tiny, tiny_trace, "layers.0.heads.0.weights[5,0]")
    score, scale, scaled, row = made.parts
    head = tiny_trace.layers[0].heads[0]
    assert (score.factors, len(score.terms)) == (("query", "key"), 32)
    np.testing.assert_allclose([t.factors[0] for t in score.terms], head.q[5])
    np.testing.assert_allclose([t.factors[1] for t in score.terms], head.k[0])
    assert scale.value == pytest.approx(32**-0.5)
    assert scaled.value == pytest.approx(head.scores[5, 0] * 32**-0.5)
    np.testing.assert_allclose(row.scores, head.scaled_masked[5])
    assert row.maximum == head.scaled_masked[5].max()
    assert made.tokens == (("token", 5), ("reads from", 0))


def test_a_hidden_weight_is_zero_and_says_why(tiny, tiny_trace):
    made = explained(tiny, tiny_trace, "layers.0.heads.0.weights[2,4]")
    assert (made.value, made.computed) == (0, 0)
    assert ("masked", -math.inf) in [(p.name, p.value) for p in made.parts if isinstance(p, Step)]


def test_the_stream_is_counted_in_the_order_of_the_pass(tiny, tiny_trace):
    (whole,) = explained(tiny, tiny_trace, "layers.1.resid_after_attn[3,7]").parts
    assert [term.name for term in whole.terms] == [
        "token_embeddings",
        "position_embeddings",
        "layers.0.attn_out",
        "layers.0.mlp_out",
        "layers.1.attn_out",
    ]
    (same,) = explained(tiny, tiny_trace, "layers.1.input[3,7]").parts
    assert same.terms == whole.terms[:4]


def test_a_norm_has_its_seven_numbers(tiny, tiny_trace):
    made = explained(tiny, tiny_trace, "layers.1.ln1.out[3,5]")
    names = ["x", "mean", "variance", "eps", "normalized", "gain", "shift", "out"]
    assert made.parts[0].formula == "layers.1.input[3,5]"
    assert [part.name for part in made.parts] == names
    x = tiny_trace.layers[1].input[3].astype(np.float64)
    assert made.parts[0].value == x[5]
    np.testing.assert_allclose([p.value for p in made.parts[1:3]], [x.mean(), x.var()])
    assert made.parts[3].value == 1e-5


def test_attention_adds_head_by_head(tiny, tiny_trace):
    (whole,) = explained(tiny, tiny_trace, "layers.2.attn_out[4,9]").parts
    assert [term.name for term in whole.terms] == ["0", "1", "2", "3", "bias"]
    out = tiny.blocks[2].attention.out
    third = tiny_trace.layers[2].heads[3].out[4] @ out.weight[96:, 9]
    assert whole.terms[3].value == pytest.approx(third, rel=1e-5)
    assert whole.terms[4].value == out.bias[9]


def test_heads_side_by_side_are_those_of_one_head(tiny, tiny_trace):
    made = explained(tiny, tiny_trace, "layers.2.attn_concat[4,70]")
    assert made.parts[0].name == "layers.2.heads.2.out"
    assert made.value == tiny_trace.layers[2].heads[2].out[4, 6]


def test_what_top_k_and_top_p_did(tiny, tiny_trace):
    made = explained(tiny, tiny_trace, "probabilities[5]", 0.7, 5, 0.8)
    names = [part.name for part in made.parts]
    assert names[-4:] == [
        "kept by top-k 5",
        "after top-k 5",
        "kept by top-p 0.8",
        "after top-p 0.8",
    ]
    kept = {part.name: part for part in made.parts}["kept by top-p 0.8"]
    assert kept.formula == "2 tokens, together"
    out = explained(tiny, tiny_trace, "probabilities[5,0]", 0.7, 5)
    assert (out.value, out.parts[-1].formula) == (0, "not among them")


def test_greedy_is_certain_of_the_likeliest(tiny, tiny_trace):
    best = int(tiny_trace.logits[5].argmax())
    assert explained(tiny, tiny_trace, f"probabilities[5,{best}]", 0.0).value == 1
    assert explained(tiny, tiny_trace, "probabilities[5,0]", 0.0).value == 0


def test_without_an_id_the_likeliest_is_meant(tiny, tiny_trace):
    best = int(tiny_trace.logits[-1].argmax())
    for name in ("logits", "probabilities"):
        assert explained(tiny, tiny_trace, f"{name}[-1]").name == f"{name}[5,{best}]"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("blocks.1.attn.hook_q[4,2,3]", "layers.1.heads.2.q[4,3]"),
        ("blocks.1.attn.hook_z[4,2,3]", "layers.1.heads.2.out[4,3]"),
        ("blocks.1.attn.hook_pattern[2,4,3]", "layers.1.heads.2.weights[4,3]"),
        ("blocks.1.hook_resid_pre[4,3]", "layers.1.input[4,3]"),
        ("hook_embed[4,3]", "token_embeddings[4,3]"),
    ],
)
def test_names_and_axes_of_transformer_lens(tiny, tiny_trace, theirs, ours):
    made = explained(tiny, tiny_trace, theirs)
    name, _, at = theirs[:-1].partition("[")
    assert made.name == ours
    assert made.value == tiny_trace[name][tuple(map(int, at.split(",")))]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("layers.0.output", "layers.0.output is not the address of a number"),
        ("", "nothing is not the address of a number"),
        ("weights[5,0]", "weights is in every layer: say which"),
        ("ln1.out[0,0]", "ln1.out is in every layer: say which"),
        ("layers.0.output[0,1]x", "layers.0.output[0,1]x is not the address of a number"),
        ("layers.0.output[]", "[] must hold whole numbers with commas between them"),
        ("layers.0.output[a,1]", "[a,1] must hold whole numbers with commas between them"),
        ("layers.0.outputs[0,1]", "no value is called layers.0.outputs"),
        ("layers.0.output[6,1]", "token 6 is out of range: this one has tokens 0 to 5"),
        ("layers.0.output[0,128]", "dimension 128 is out of range"),
        ("layers.0.heads.4.q[0,1]", "head 4 is out of range: this one has heads 0 to 3"),
        ("layers.4.output[0,1]", "layer 4 is out of range: this one has layers 0 to 3"),
        ("logits[0,4096]", "id 4096 is out of range: this one has ids 0 to 4095"),
        ("layers.0.mlp_act[0]", "layers.0.mlp_act[0] must say token, unit: 2 numbers in brackets"),
        ("layers.0.ln1.mean[0,1]", "layers.0.ln1.mean[0,1] must say token: one number in brackets"),
        ("blocks.0.ln1.hook_scale[3,0]", "blocks.0.ln1.hook_scale is sqrt(variance + eps)"),
        ("ln_final.mean_square[0]", "ln_final.mean_square is not in this trace"),
    ],
)
def test_what_is_no_number_is_refused(tiny, tiny_trace, address, said):
    with pytest.raises(UsageError) as fault:
        explained(tiny, tiny_trace, address)
    assert said in fault.value.message


@pytest.mark.parametrize("name", BY_KEY.values(), ids=lambda point: point.key)
def test_what_is_kept_is_enough(name, tiny, tiny_trace):
    full = name.name.format(l=2, h=1)
    if full not in tiny_trace.names():
        return
    axes = ",".join("1" for _ in name.axes.split())
    address = f"{full}[{axes}]"
    few = gptscope.trace(tiny, tiny_trace.ids, keep=read(address).keep(tiny.spec))
    assert str(explain(tiny, few, address)) == str(explain(tiny, tiny_trace, address))
    assert len(few.values) < len(tiny_trace.values)


def test_a_trace_without_what_is_needed_says_so(tiny, tiny_trace):
    few = gptscope.trace(tiny, tiny_trace.ids, keep="ln_final.out")
    with pytest.raises(UsageError, match=r"layers\.3\.output is not in this trace"):
        explain(tiny, few, "ln_final.out[0,0]")
    few = gptscope.trace(tiny, tiny_trace.ids, keep=["layers.0.output", "*embeddings"])
    with pytest.raises(UsageError, match=r"layers\.0\.attn_out is not in this trace"):
        explain(tiny, few, "layers.0.output[0,0]")


def test_records_are_plain():
    whole = Sum("x", "part", (Term("a", 1.0), Term("b", 2.0)), 3.5)
    assert (whole.value, whole.remainder) == (3.0, 0.5)
    assert Sum("x", "part", whole.terms).remainder is None


def test_a_norm_after_a_sum_begins_with_the_sum():
    model = gptscope.load(GOLDEN / "toy-post", "float64")
    made = explain(model, gptscope.trace(model, [1, 2, 3]), "layers.1.output[2,7]")
    terms = [term.name for term in made.parts[0].terms]
    assert terms == ["layers.1.resid_after_attn", "layers.1.mlp_out"]
    assert made.parts[1].name == "mean"
