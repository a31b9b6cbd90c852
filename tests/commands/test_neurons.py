import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gptscope
from gptscope.analysis.attribution import attribute
from gptscope.analysis.neurons import likeness, reads_along, says
from tests.helpers.cli import SENTENCE, asked, column, parts, refused, run_cli
from tests.helpers.families import family_folder

MOM, DAD = "<id 384>", "<id 703>"


@pytest.fixture(scope="module")
def account(tiny, trace):
    return attribute(tiny, trace, 5, {384: 1.0})


def given_by(tiny, trace, wanted, position=5):
    """What each unit gives, from the stream of the last layer backwards, by hand."""
    x = trace.layers[-1].output[position].astype(np.float64)
    u = sum(w * np.asarray(tiny.output_table[i], np.float64) for i, w in wanted.items())
    u = u * tiny.ln_final.gain
    u = (u - u.mean()) / np.sqrt(x.var() + tiny.spec.norm_eps)
    per_one = np.stack([b.mlp.down.weight.astype(np.float64) @ u for b in tiny.blocks])
    values = np.stack([layer.mlp_act[position].astype(np.float64) for layer in trace.layers])
    return values, per_one


def of(table):
    return list(zip(column(table, "layer"), column(table, "unit"), strict=True))


def test_the_strongest_units_for_an_answer(tiny, trace):
    table, *_ = parts("neurons", SENTENCE, "--answer", MOM)
    values, per_one = given_by(tiny, trace, {384: 1})
    given = values * per_one
    order = np.argsort(-np.abs(given), axis=None)[:10]
    assert of(table) == [divmod(int(i), 512) for i in order]
    for name, expected in (("value", values), ("per 1", per_one), ("gives", given)):
        assert_allclose(column(table, name), expected.flat[order], rtol=1e-4)
    assert table["title"] == "Units strongest for the logit of ·mom, after token 5 ·her"


def test_they_and_the_rest_add_up_to_the_logit(tiny, trace):
    _, facts, shares, *_ = parts("neurons", SENTENCE, "--answer", MOM, "--top", "7")
    values, per_one = given_by(tiny, trace, {384: 1})
    given = values * per_one
    inside = np.sort(np.abs(given), axis=None)[-7:].sum()
    found = facts["facts"]
    *summed, (name, logit), (last, remainder) = found.items()
    assert [key for key, _ in summed] == [
        "the 7 units shown",
        "2,041 other units",
        "feed-forward biases",
        "everything else",
    ]
    assert (name, last) == ("logit", "remainder")
    assert_allclose(logit, trace.logits[5, 384], rtol=1e-6)
    assert_allclose(found["the 7 units shown"] + found["2,041 other units"], given.sum(), rtol=1e-4)
    assert_allclose(sum(value for _, value in summed) + remainder, logit, rtol=1e-9)
    assert abs(remainder) < 1e-4
    assert shares["facts"]["units"] == 2048
    assert shares["facts"]["that give"] == int((given > 0).sum())
    assert shares["facts"]["that take"] == int((given < 0).sum())
    assert_allclose(
        shares["facts"]["share of those shown"], inside / np.abs(given).sum(), rtol=1e-4
    )
    sizes = np.sort(np.abs(given), axis=None)[::-1].cumsum()
    assert shares["facts"]["make half of it"] == int((sizes < sizes[-1] / 2).sum()) + 1


def test_the_units_of_one_layer(tiny, trace):
    table, facts, shares, *_ = parts("neurons", SENTENCE, "--answer", MOM, "--layer", "-2")
    values, per_one = given_by(tiny, trace, {384: 1})
    given = values * per_one
    assert set(column(table, "layer")) == {2}
    assert column(table, "unit") == np.argsort(-np.abs(given[2]))[:10].tolist()
    others = np.delete(given, 2, axis=0).sum()
    assert_allclose(facts["facts"]["units of other layers"], others, rtol=1e-4)
    assert shares["facts"]["units"] == 512
    assert abs(facts["facts"]["remainder"]) < 1e-4


def test_one_answer_against_another(tiny, trace):
    table, facts, *_, last = parts("neurons", SENTENCE, "-a", MOM, "--against", DAD, "--at", "3")
    values, per_one = given_by(tiny, trace, {384: 1, 703: -1}, 3)
    order = np.argsort(-np.abs(values * per_one), axis=None)[:10]
    assert_allclose(column(table, "gives"), (values * per_one).flat[order], rtol=1e-4)
    difference = float(trace.logits[3, 384]) - float(trace.logits[3, 703])
    assert_allclose(facts["facts"]["difference"], difference, rtol=1e-6)
    assert "the logit of ·mom less that of ·dad, after token 3 ·play" in table["title"]
    assert last["text"].startswith("--layer and --unit show")


def test_what_they_raise_most(tiny, trace):
    table, *_ = parts("neurons", SENTENCE, "--answer", MOM, "--top", "300")
    logits = says(tiny, trace, of(table), 5) * np.sign(column(table, "value"))[:, None]
    expected = [tiny.tokenizer.text_of(int(i)) for i in logits.argmax(axis=1)]
    assert column(table, "raises most") == expected
    assert min(column(table, "value")) < 0


def test_the_likeliest_token_is_the_answer_if_none_is_given(tiny, trace):
    *_, note = asked("neurons", SENTENCE, "--at", "2")["parts"]
    best = tiny.tokenizer.text_of(int(trace.logits[2].argmax())).replace(" ", "·")
    assert note["text"] == f"{best} is the likeliest token there; --answer asks for another"


UNIT = ("neurons", SENTENCE, "--layer", "2", "--unit", "204", "--answer", MOM, "--top", "6")


def test_a_unit_on_the_text(trace, labels):
    passage, table, *_ = parts(*UNIT)
    layer = trace.layers[2]
    assert passage["tokens"] == column(table, "token") == labels
    assert_allclose(passage["values"], layer.mlp_act[:, 204], rtol=1e-5)
    assert_allclose(column(table, "before"), layer.mlp_hidden[:, 204], rtol=1e-5)
    assert_allclose(column(table, "after"), layer.mlp_act[:, 204], rtol=1e-5)
    assert table["title"] == "after = gelu_new(before)"


def test_what_a_unit_reads(tiny, trace):
    table = parts(*UNIT)[2]
    cosines = likeness(tiny, reads_along(tiny, trace, tiny.blocks[2].mlp.up, (2, 204)))
    assert column(table, "id") == np.argsort(-cosines)[:6].tolist()
    assert_allclose(column(table, "cosine"), np.sort(cosines)[::-1][:6], rtol=1e-5)


def test_what_a_unit_promotes_and_suppresses(tiny, trace):
    promotes, suppresses = parts(*UNIT)[3:5]
    logits, value = says(tiny, trace, [(2, 204)], 5)[0], float(trace.layers[2].mlp_act[5, 204])
    for table, order in ((promotes, np.argsort(-logits)), (suppresses, np.argsort(logits))):
        assert column(table, "id") == order[:6].tolist()
        assert_allclose(column(table, "per 1"), logits[order[:6]], rtol=1e-5)
        assert_allclose(column(table, "gives"), value * logits[order[:6]], rtol=1e-5)
    assert promotes["title"].startswith("Promotes")
    assert suppresses["title"].startswith("Suppresses")


def test_its_share_of_the_answer_is_that_among_all_units(tiny, trace):
    facts, note, *_ = parts(*UNIT)[5:]
    strongest, *_ = parts("neurons", SENTENCE, "--answer", MOM, "--layer", "2", "--top", "512")
    row = next(row for row in strongest["rows"] if row["unit"] == 204)
    for name in ("value", "per 1", "gives"):
        assert_allclose(facts["facts"][name], row[name], rtol=1e-6)
    mean = says(tiny, trace, [(2, 204)], 5).mean()
    assert_allclose(facts["facts"]["mean per 1 of all tokens"], mean, rtol=1e-5)
    scale = np.sqrt(trace.ln_final.variance[5] + tiny.spec.norm_eps)
    assert f"with the scale of ln_final ({scale:.4g}) frozen at token 5 ·her" in note["text"]


def test_a_value_below_zero_is_told(trace):
    said = "Its value there is below zero"
    for sign, told in ((-1, True), (1, False)):
        unit = int((sign * trace.layers[0].mlp_act[5]).argmax())
        notes = parts("neurons", SENTENCE, "--layer", "0", "--unit", str(unit))[6:]
        assert any(note["text"].startswith(said) for note in notes) == told


def test_a_gated_unit_reads_twice():
    folder = family_folder("llama")
    model = gptscope.load(folder)
    trace = gptscope.trace(model, [1, 2, 3])
    args = ("--ids", "1,2,3", "--layer", "1", "-u", "5", "--model", folder)
    passage, table, gate, up, *_ = parts("neurons", *args)
    layer, mlp = trace.layers[1], model.blocks[1].mlp
    for name, values in (("gate", layer.mlp_gate), ("up", layer.mlp_up), ("after", layer.mlp_act)):
        assert_allclose(column(table, name), values[:, 5], rtol=1e-5)
    assert_allclose(passage["values"], layer.mlp_act[:, 5], rtol=1e-5)
    for part, matrix in ((gate, mlp.gate), (up, mlp.up)):
        cosines = likeness(model, reads_along(model, trace, matrix, (1, 5)))
        assert column(part, "id") == np.argsort(-cosines)[:10].tolist()
    assert gate["title"] == "The tokens nearest to what opens its gate"
    assert table["title"] == "after = silu(gate) x up"


def test_a_capped_logit_is_taken_before_its_cap():
    folder = family_folder("gemma2")
    model, ids = gptscope.load(folder), [1, 2, 3, 4]
    trace = gptscope.trace(model, ids)
    args = ("--ids", "1,2,3,4", "--model", folder, "--answer", "7")
    _, facts, *_ = parts("neurons", *args)
    held = float(trace["logits_before_cap"][3, 7])
    assert_allclose(facts["facts"]["logit before the cap"], held, rtol=1e-6)
    assert abs(facts["facts"]["remainder"]) < 1e-4
    *_, note = parts("neurons", *args, "--layer", "0", "--unit", "0")
    assert note["text"] == "Logits are those before their cap"


def test_an_edit_is_in_the_numbers():
    edit = ("--edit", "layers.2.mlp_act[:,204]=0")
    answer = asked("neurons", SENTENCE, "--answer", MOM, "--top", "2048", *edit)
    assert answer["edits"] == ["layers.2.mlp_act[:,204]=0"]
    table, facts, *_ = answer["parts"]
    row = next(row for row in table["rows"] if (row["layer"], row["unit"]) == (2, 204))
    assert (row["value"], row["gives"]) == (0, 0)
    assert abs(facts["facts"]["remainder"]) < 1e-4
    passage, *_ = parts(*UNIT, *edit)
    assert passage["values"] == [0] * 6


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["--unit", "3"], "--unit goes with --layer"),
        (["--layer", "4"], "layer 4 is out of range: this one has layers 0 to 3"),
        (
            ["--layer", "0", "--unit", "512"],
            "unit 512 is out of range: this one has units 0 to 511",
        ),
        (["--at", "6"], "token 6 is out of range"),
        (["--answer", ""], "--answer is empty"),
        (["--answer", MOM, "--against", MOM], "--answer and --against are both ' mom'"),
    ],
)
def test_what_cannot_be_asked(args, why):
    sentence, _ = refused(run_cli(["neurons", SENTENCE, *args]), 2)
    assert sentence.startswith(why)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_pass_that_went_wrong_has_no_likeliest_token_but_units(folder, value):
    gain = np.full(16, value, "float32")
    path = str(folder(tensors={"transformer.h.1.ln_1.weight": gain}))
    broken = ["neurons", "--model", path, "--ids", "3,1", "--format", "json"]
    assert refused(run_cli(broken), 1)[0].startswith("the logits hold NaN")
    of_all = json.loads(run_cli([*broken, "--answer", "2"]).text)["parts"]
    assert column(of_all[0], "raises most") == [None] * 10
    assert of_all[1]["facts"]["remainder"] == "NaN"
    one = json.loads(run_cli([*broken, "--answer", "2", "--layer", "1", "-u", "0"]).text)["parts"]
    assert one[0]["values"] == ["NaN", "NaN"]
    assert [part["title"] for part in one if part["kind"] == "table"][1:] == [
        "The tokens nearest to what it reads"
    ]
