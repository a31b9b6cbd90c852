import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gptscope
from gptscope.analysis.attribution import attribute
from gptscope.analysis.neurons import likeness, reads_along, says
from tests.helpers.cli import SENTENCE, asked, column, parts, refused, run_cli
from tests.helpers.families import family_folder
from tests.helpers.folders import tensors_of

MOM, DAD = "<id 384>", "<id 703>"


def called(found, name):
    return next(part for part in found if part.get("name") == name)


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
    _, table, *_ = parts("neurons", SENTENCE, "--answer", MOM)
    values, per_one = given_by(tiny, trace, {384: 1})
    given = values * per_one
    order = np.argsort(-np.abs(given), axis=None)[:10]
    assert of(table) == [divmod(int(i), 512) for i in order]
    for name, expected in (("value", values), ("says", per_one), ("gives", given)):
        assert_allclose(column(table, name), expected.flat[order], rtol=1e-4)
    assert table["title"] == "Units strongest for the logit of ·mom, after token 5 ·her"


def test_they_and_the_rest_add_up_to_the_logit(tiny, trace):
    _, _, facts, shares, *_ = parts("neurons", SENTENCE, "--answer", MOM, "--top", "7")
    values, per_one = given_by(tiny, trace, {384: 1})
    given = values * per_one
    inside = np.sort(np.abs(given), axis=None)[-7:].sum()
    found = facts["facts"]
    *summed, (name, logit), (last, remainder) = found.items()
    assert [key for key, _ in summed] == [
        "units shown",
        "2,041 other units",
        "feed-forward biases",
        "everything else",
    ]
    assert (name, last) == ("logit", "remainder")
    assert_allclose(logit, trace.logits[5, 384], rtol=1e-6)
    assert_allclose(found["units shown"] + found["2,041 other units"], given.sum(), rtol=1e-4)
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
    _, table, facts, shares, *_ = parts("neurons", SENTENCE, "--answer", MOM, "--layer", "-2")
    values, per_one = given_by(tiny, trace, {384: 1})
    given = values * per_one
    assert set(column(table, "layer")) == {2}
    assert column(table, "unit") == np.argsort(-np.abs(given[2]))[:10].tolist()
    others = np.delete(given, 2, axis=0).sum()
    assert_allclose(facts["facts"]["units of other layers"], others, rtol=1e-4)
    assert shares["facts"]["units"] == 512
    assert abs(facts["facts"]["remainder"]) < 1e-4


def test_one_answer_against_another(tiny, trace):
    question, table, facts, *_, last = parts(
        "neurons", SENTENCE, "-a", MOM, "--against", DAD, "--at", "3"
    )
    values, per_one = given_by(tiny, trace, {384: 1, 703: -1}, 3)
    order = np.argsort(-np.abs(values * per_one), axis=None)[:10]
    assert_allclose(column(table, "gives"), (values * per_one).flat[order], rtol=1e-4)
    difference = float(trace.logits[3, 384]) - float(trace.logits[3, 703])
    assert_allclose(facts["facts"]["answer - against"], difference, rtol=1e-6)
    assert column(question, "position") == [3, 3, 3]
    assert column(question, "id") == [384, 703, None]
    assert "the logit of ·mom less that of ·dad, after token 3 ·play" in table["title"]
    assert last["text"].startswith("--layer and --unit show")


def test_what_they_raise_most(tiny, trace):
    _, table, *_ = parts("neurons", SENTENCE, "--answer", MOM, "--top", "300")
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
    _, passage, table, *_ = parts(*UNIT)
    layer = trace.layers[2]
    assert passage["tokens"] == column(table, "token") == labels
    assert_allclose(passage["values"], layer.mlp_act[:, 204], rtol=1e-5)
    assert_allclose(column(table, "before"), layer.mlp_hidden[:, 204], rtol=1e-5)
    assert_allclose(column(table, "after"), layer.mlp_act[:, 204], rtol=1e-5)
    assert table["title"] == "after = gelu_new(before)"


def test_what_a_unit_reads(tiny, trace):
    table = parts(*UNIT)[3]
    cosines = likeness(tiny, reads_along(tiny, trace, tiny.blocks[2].mlp.up, (2, 204)))
    assert column(table, "id") == np.argsort(-cosines)[:6].tolist()
    assert_allclose(column(table, "cosine"), np.sort(cosines)[::-1][:6], rtol=1e-5)


def test_what_a_unit_promotes_and_suppresses(tiny, trace):
    promotes, suppresses = parts(*UNIT)[4:6]
    logits, value = says(tiny, trace, [(2, 204)], 5)[0], float(trace.layers[2].mlp_act[5, 204])
    for table, order in ((promotes, np.argsort(-logits)), (suppresses, np.argsort(logits))):
        assert column(table, "id") == order[:6].tolist()
        assert_allclose(column(table, "says"), logits[order[:6]], rtol=1e-5)
        assert_allclose(column(table, "gives"), value * logits[order[:6]], rtol=1e-5)
    assert promotes["title"].startswith("Promotes")
    assert suppresses["title"].startswith("Suppresses")


def test_its_share_of_the_answer_is_that_among_all_units(tiny, trace):
    facts, note, *_ = parts(*UNIT)[6:]
    _, strongest, *_ = parts("neurons", SENTENCE, "--answer", MOM, "--layer", "2", "--top", "512")
    row = next(row for row in strongest["rows"] if row["unit"] == 204)
    for name in ("value", "says", "gives"):
        assert_allclose(facts["facts"][name], row[name], rtol=1e-6)
    mean = says(tiny, trace, [(2, 204)], 5).mean()
    assert_allclose(facts["facts"]["mean says of all tokens"], mean, rtol=1e-5)
    scale = np.sqrt(trace.ln_final.variance[5] + tiny.spec.norm_eps)
    assert f"with the scale of ln_final ({scale:.4g}) frozen at token 5 ·her" in note["text"]


def test_a_value_below_zero_is_told(trace):
    for sign in (-1, 1):
        unit = int((sign * trace.layers[0].mlp_act[5]).argmax())
        value = float(trace.layers[0].mlp_act[5, unit])
        found = parts("neurons", SENTENCE, "--layer", "0", "--unit", str(unit))
        promotes, suppresses = (called(found, name) for name in ("promotes", "suppresses"))
        if sign < 0:
            assert promotes["title"] == f"Promotes: here, at {value:.4g}, it lowers these"
            assert suppresses["title"] == f"Suppresses: here, at {value:.4g}, it raises these"
        else:
            assert promotes["title"] == "Promotes: the logits that it raises most"
            assert suppresses["title"] == "Suppresses: those that it lowers most"
        assert np.all(np.array(column(promotes, "gives")) * sign > 0)
        assert np.all(np.array(column(suppresses, "gives")) * sign < 0)


def test_of_a_long_text_the_table_has_the_largest_values(tiny):
    text = " ".join([SENTENCE] * 5)
    after = gptscope.trace(tiny, tiny.tokenizer.encode(text)).layers[1].mlp_act[:, 3]
    unit = ("neurons", text, "--layer", "1", "--unit", "3", "--top")
    found = parts(*unit, "4")
    steps = called(found, "steps")
    assert column(steps, "position") == np.argsort(-np.abs(after), kind="stable")[:4].tolist()
    assert_allclose(column(steps, "after"), after[column(steps, "position")], rtol=1e-5)
    assert steps["title"].endswith(": the 4 of 30 tokens where it is farthest from zero")
    assert_allclose(called(found, "values")["values"], after, rtol=1e-5)
    every = called(parts(*unit, "30"), "steps")
    assert column(every, "position") == list(range(30))
    assert every["title"] == "after = gelu_new(before)"


def test_a_gated_unit_reads_twice():
    folder = family_folder("llama")
    model = gptscope.load(folder)
    trace = gptscope.trace(model, [1, 2, 3])
    args = ("--ids", "1,2,3", "--layer", "1", "-u", "5", "--model", folder)
    _, passage, table, gate, up, *_ = parts("neurons", *args)
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
    _, _, facts, *_ = parts("neurons", *args)
    held = float(trace["logits_before_cap"][3, 7])
    assert_allclose(facts["facts"]["logit before the cap"], held, rtol=1e-6)
    assert abs(facts["facts"]["remainder"]) < 1e-4
    *_, note = parts("neurons", *args, "--layer", "0", "--unit", "0")
    assert note["text"] == "Logits are those before their cap"


def test_an_edit_is_in_the_numbers():
    edit = ("--edit", "layers.2.mlp_act[:,204]=0")
    answer = asked("neurons", SENTENCE, "--answer", MOM, "--top", "2048", *edit)
    assert answer["edits"] == ["layers.2.mlp_act[:,204]=0"]
    _, table, facts, *_ = answer["parts"]
    row = next(row for row in table["rows"] if (row["layer"], row["unit"]) == (2, 204))
    assert (row["value"], row["gives"]) == (0, 0)
    assert abs(facts["facts"]["remainder"]) < 1e-4
    _, passage, *_ = parts(*UNIT, *edit)
    assert passage["values"] == [0] * 6
    assert "counted before" not in str(answer)


def test_an_edit_after_the_units_is_a_row_of_its_own():
    edit = ("--edit", "layers.3.mlp_out=0", "--edit", "layers.1.attn_out=0", "--top", "3")
    name, other = (f"{one} changed by --edit" for one in ("layers.3.mlp_out", "layers.1.attn_out"))
    layers, shown = [], []
    for layer in range(4):
        _, _, facts, *_, notes = split_notes("--layer", str(layer), *edit)
        found = facts["facts"]
        units = {key: x for key, x in found.items() if "units" in key}
        bias = found["feed-forward biases"]
        *summed, (last, logit), (_, remainder) = found.items()
        assert (last, abs(remainder) < 1e-4) == ("logit", True)
        assert_allclose(sum(x for _, x in summed) + remainder, logit, rtol=1e-9)
        assert sum(units.values()) + bias != pytest.approx(found[name])
        assert other in found
        layers.append(found[name])
        shown.append("--edit changed layers.3.mlp_out:" in notes)
        assert "layers.1.attn_out" not in notes
    assert shown == [False, False, False, True]
    assert_allclose(layers, layers[0])


def split_notes(*args):
    found = parts("neurons", SENTENCE, "--answer", MOM, *args)
    told = [part for part in found if part["kind"] != "note"]
    return (*told, " ".join(part["text"] for part in found if part["kind"] == "note"))


def test_what_is_zeroed_is_undone_by_its_row(tiny):
    edits = ["layers.3.mlp_out=0"]
    trace = gptscope.trace(tiny, tiny.tokenizer.encode(SENTENCE), edits=edits)
    found = attribute(tiny, trace, 5, {384: 1.0})
    terms = {term.name: term.value for term in found.terms}
    undone = -terms["layers.3.mlp"] - terms["layers.3.mlp.bias"]
    _, _, facts, *_ = parts("neurons", SENTENCE, "--answer", MOM, "--edit", *edits)
    row = "layers.3.mlp_out changed by --edit"
    assert_allclose(facts["facts"][row], undone, rtol=1e-4)
    for layer, there in ((3, True), (2, False)):
        one = split_notes("--layer", str(layer), "--unit", "17", "--edit", *edits)
        unit = next(part for part in one[:-1] if part["name"] == "unit")["facts"]
        assert (row in unit) == there == ("a unit gives is counted before" in one[-1])
        if there:
            assert_allclose(unit[row], undone, rtol=1e-4)


def test_an_edit_of_many_values_is_told_shortly():
    edit = ("--edit", "layers.*.output=*2")
    *_, notes = split_notes("--layer", "0", "--unit", "1", *edit)
    assert "counted before --edit changed 4 values:" in notes
    *_, notes = split_notes("--layer", "2", *edit)
    assert "before --edit changed layers.2.output and layers.3.output:" in notes
    *_, notes = split_notes("--edit", "logits=*2")
    assert "counted before --edit changed logits:" in notes


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
        (["--answer", MOM, "--against", MOM], "the answer and --against are the same token, 384"),
    ],
)
def test_what_cannot_be_asked(args, why):
    sentence, _ = refused(run_cli(["neurons", SENTENCE, *args]), 2)
    assert sentence.startswith(why)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_pass_that_went_wrong_has_no_answer(folder, value):
    gain = np.full(16, value, "float32")
    path = str(folder(tensors={"transformer.h.1.ln_1.weight": gain}))
    broken = ["neurons", "--model", path, "--ids", "3,1", "--format", "json"]
    why = "the logits after token 1 <id 1> hold NaN, so no token can be rated"
    for more in ([], ["--answer", "2"], ["--answer", "2", "--layer", "1", "--unit", "0"]):
        assert refused(run_cli([*broken, *more]), 1)[0] == why


def test_a_unit_that_is_no_number_is_told_where_an_edit_puts_it_right(folder):
    down = tensors_of("gpt2")["transformer.h.1.mlp.c_proj.weight"].copy()
    down[0] = np.nan
    path = str(folder(tensors={"transformer.h.1.mlp.c_proj.weight": down}))
    args = ["neurons", "--model", path, "--ids", "3,1", "--edit", "layers.1.mlp_out=0"]
    made = run_cli([*args, "--format", "json"])
    found = json.loads(made.text)["parts"]
    assert column(found[1], "raises most")[0] is None
    assert found[2]["facts"]["remainder"] == "NaN"
    one = json.loads(run_cli([*args, "-l", "1", "-u", "0", "--format", "json"]).text)["parts"]
    names = [part["name"] for part in one if part["kind"] != "note"]
    assert names == ["asked", "values", "steps", "reads", "unit"]


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ([], ["asked", "units", "total", "shares"]),
        (
            ["-l", "1", "-u", "3"],
            ["asked", "values", "steps", "reads", "promotes", "suppresses", "unit"],
        ),
        (
            ["-l", "1", "-u", "3", "-m", "llama-tiny"],
            ["asked", "values", "steps", "gate", "up", "promotes", "suppresses", "unit"],
        ),
    ],
)
def test_parts_have_names(args, names):
    found = parts("neurons", SENTENCE, *args)
    assert [part["name"] for part in found if part["kind"] != "note"] == names


def test_what_is_asked_is_in_titles_for_people_and_a_table_for_programs():
    assert "rank" not in run_cli(["neurons", SENTENCE]).text
    csv = run_cli(["neurons", SENTENCE, "--format", "csv"])
    assert csv.lines[1].startswith("position,asked,token,id,logit")
    assert csv.lines[2].startswith("5,likeliest, toys,613,")
