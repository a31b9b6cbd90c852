import numpy as np
import pytest
from numpy.testing import assert_allclose

import gptscope
from gptscope.analysis.attribution import attribute, source_contributions, unit_contributions
from tests.helpers.cli import SENTENCE, column, parts, refused, rows, run_cli
from tests.helpers.families import family_folder
from tests.helpers.folders import tensors_of

TOYS, DOLL = " toys", " doll"


def called(*args):
    return ["attribute", SENTENCE, "--answer", TOYS, *args]


def of_kind(found, kind):
    return [part for part in found if part["kind"] == kind]


def sums(found):
    # The sums that a view ends in, and what all parts add up to.
    whole = [part for part in of_kind(found, "table") if part["title"] == "The whole sum"]
    (facts,) = of_kind(found, "facts")
    return {name: value for table in whole for name, value in rows(table)} | facts["facts"]


def notes(found):
    return " ".join(part["text"] for part in of_kind(found, "note"))


@pytest.fixture(scope="module")
def toys(tiny):
    return tiny.tokenizer.encode(SENTENCE + TOYS)[-1]


@pytest.fixture(scope="module")
def doll(tiny):
    return tiny.tokenizer.encode(SENTENCE + DOLL)[-1]


@pytest.fixture(scope="module")
def account(tiny, trace, toys):
    return attribute(tiny, trace, 5, {toys: 1.0})


@pytest.fixture(scope="module")
def terms(account):
    return {term.name: term.value for term in account.terms}


def test_every_part_in_order(account):
    _, table, *_ = parts(*called("--sort", "order"))
    assert table["title"] == "Logit of \u00b7toys after token 5 \u00b7her"
    assert column(table, "part") == [term.name for term in account.terms]
    assert_allclose(column(table, "gives"), [term.value for term in account.terms], atol=1e-6)


def test_the_largest_come_first_and_the_rest_is_summed(account):
    found = parts(*called("--top", "4"))
    table = found[1]
    *shown, other = rows(table)
    largest = sorted(account.terms, key=lambda term: -abs(term.value))
    assert [name for name, _ in shown] == [term.name for term in largest[:4]]
    assert other[0] == f"{len(account.terms) - 4} other parts"
    assert other[1] == pytest.approx(sum(term.value for term in largest[4:]), abs=1e-5)
    assert list(sums(found)) == ["all parts", "logit", "remainder"]
    assert len(rows(parts(*called())[1])) == 21


def test_the_question_is_told(trace, toys, doll):
    table, *_ = parts(*called("--against", DOLL))
    logits = trace.logits[5].astype(np.float64)
    share = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    assert (table["title"], table["name"]) == ("After token 5 \u00b7her", "asked")
    assert column(table, "position") == [5, 5, 5]
    assert column(table, "id") == [toys, doll, None]
    assert column(table, "asked") == ["answer", "against", "answer - against"]
    assert column(table, "token") == [TOYS, DOLL, None]
    difference = float(logits[toys] - logits[doll])
    expected = [logits[toys], logits[doll], difference]
    assert_allclose(column(table, "logit"), expected, atol=1e-6)
    assert_allclose(column(table, "probability")[:2], share[[toys, doll]], rtol=1e-5)
    ranks = [1 + int((logits > logits[i]).sum()) for i in (toys, doll)]
    assert column(table, "rank") == [*ranks, None]


def test_without_an_answer_it_is_the_likeliest(trace, tiny):
    table, second, *_ = parts("attribute", SENTENCE, "--at", "2")
    best = int(trace.logits[2].argmax())
    assert rows(table)[0][:4] == [2, "likeliest", tiny.tokenizer.text_of(best), best]
    assert second["title"].endswith("after token 2 \u00b7to")


def test_a_difference_is_split(account, tiny, trace, doll):
    found = parts(*called("--against", DOLL, "--sort", "order"))
    other = attribute(tiny, trace, 5, {doll: 1.0})
    pairs = zip(account.terms, other.terms, strict=True)
    assert_allclose(column(found[1], "gives"), [a.value - b.value for a, b in pairs], atol=1e-5)
    assert (
        found[1]["title"] == "Logit of \u00b7toys less that of \u00b7doll after token 5 \u00b7her"
    )
    assert sums(found)["answer - against"] == pytest.approx(account.logit - other.logit, abs=1e-5)
    assert "alike" not in notes(found)
    assert "alike" in notes(parts(*called()))


@pytest.mark.parametrize("by", ["part", "layer", "head", "mlp", "neuron", "source"])
@pytest.mark.parametrize("dtype", [[], ["--dtype", "float64"]])
def test_everything_adds_up(by, dtype, account):
    found = parts(*called("--by", by, *dtype))
    *apart, total, logit, remainder = sums(found).values()
    assert list(sums(found))[-3:] == ["all parts", "logit", "remainder"]
    assert logit == pytest.approx(account.logit, rel=1e-5)
    assert total + remainder == pytest.approx(logit, abs=1e-12)
    assert abs(remainder) < (1e-12 if dtype else 1e-5)
    if by == "part":
        assert apart == []
        assert sum(column(found[1], "gives")) == pytest.approx(total, abs=1e-5)
    else:
        assert sum(apart) == pytest.approx(total, abs=1e-5)


def test_by_layer(terms):
    found = parts(*called("--by", "layer"))
    table = found[1]
    assert list(table["rows"][0]) == ["layer", "attention", "feed forward", "together"]
    for layer, attention, mlp, together in rows(table):
        heads = sum(terms[f"layers.{layer}.heads.{h}"] for h in range(4))
        assert attention == pytest.approx(heads + terms[f"layers.{layer}.attn.bias"], abs=1e-5)
        units = terms[f"layers.{layer}.mlp"]
        assert mlp == pytest.approx(units + terms[f"layers.{layer}.mlp.bias"], abs=1e-5)
        assert together == pytest.approx(attention + mlp, abs=1e-5)
    ends = ["token_embeddings", "position_embeddings", "ln_final.shift"]
    assert list(sums(found))[:4] == ["all layers", *ends]
    assert sum(column(table, "together")) == pytest.approx(sums(found)["all layers"], abs=1e-5)
    assert [sums(found)[name] for name in ends] == pytest.approx(
        [terms[name] for name in ends], abs=1e-5
    )


def test_norms_inside_blocks_have_a_column():
    folder = family_folder("bloom-after-norm")
    found = parts("attribute", "--ids", "1,2,3", "-m", folder, "--by", "layer", "--sort", "size")
    table = found[1]
    assert list(table["rows"][0]) == ["layer", "attention", "feed forward", "norms", "together"]
    for _, *split, together in rows(table):
        assert together == pytest.approx(sum(split), abs=1e-5)
    assert np.all(np.diff(np.abs(column(table, "together"))) <= 0)
    assert abs(sums(found)["remainder"]) < 1e-4


def test_by_head(terms):
    found = parts(*called("--by", "head"))
    grid = found[1]
    values = np.array(grid["values"])
    expected = [[terms[f"layers.{i}.heads.{h}"] for h in range(4)] for i in range(4)]
    assert_allclose(values, expected, atol=1e-6)
    assert grid["rows"] == [f"layer {layer}" for layer in range(4)]
    assert sums(found)["all heads"] == pytest.approx(values.sum(), abs=1e-5)
    high = np.unravel_index(values.argmax(), values.shape)
    assert notes(found).startswith("layers.{}.heads.{} gives most (+".format(*high))


def test_by_mlp(terms):
    found = parts(*called("--by", "mlp", "--sort", "size"))
    table = found[1]
    assert np.all(np.diff(np.abs(column(table, "together"))) <= 0)
    for layer, units, bias, together in rows(table):
        assert units == pytest.approx(terms[f"layers.{layer}.mlp"], abs=1e-5)
        assert bias == pytest.approx(terms[f"layers.{layer}.mlp.bias"], abs=1e-5)
        assert together == pytest.approx(units + bias, abs=1e-5)
    for name, kind in (("units", "feed-forward units"), ("bias", "feed-forward biases")):
        assert sums(found)[kind] == pytest.approx(sum(column(table, name)), abs=1e-5)


@pytest.mark.parametrize("layer", [[], ["--layer", "-1"]])
def test_by_neuron(layer, tiny, trace, account, terms):
    shown = parts(*called("--by", "neuron", "--top", "6", *layer))
    table, whole = shown[1], sums(shown)
    layers = [3] if layer else range(4)
    found = [unit_contributions(tiny, trace, account.found, i) for i in layers]
    every = np.concatenate(found)
    best = np.argsort(-np.abs(every))[:6]
    assert column(table, "unit") == (best % 512).tolist()
    assert column(table, "layer") == [layers[i // 512] for i in best]
    for i, unit, value, says, gives in rows(table):
        assert value == pytest.approx(float(trace.layers[i].mlp_act[5, unit]), rel=1e-5)
        assert gives == pytest.approx(value * says, rel=1e-4)
    assert_allclose(column(table, "gives"), every[best], rtol=1e-4)
    others = f"{every.size - 6:,} other units"
    assert whole["units shown"] + whole[others] == pytest.approx(every.sum(), abs=1e-5)
    if layer:
        elsewhere = sum(terms[f"layers.{i}.mlp"] for i in range(3))
        assert whole["units of other layers"] == pytest.approx(elsewhere, abs=1e-5)


def test_tokens_that_all_heads_read(tiny, trace, account, terms):
    shown = parts(*called("--by", "source"))
    _, grid, table, *_ = shown
    found = [np.multiply(*source_contributions(tiny, trace, account.found, i)) for i in range(4)]
    assert_allclose(grid["values"], [x.sum(axis=0) for x in found], atol=1e-5)
    whole = np.sum(found, axis=(0, 1))
    assert_allclose(column(table, "gives"), whole, atol=1e-5)
    heads = sum(value for name, value in terms.items() if ".heads." in name)
    assert sums(shown)["tokens shown"] == pytest.approx(heads, abs=1e-4)


def test_tokens_that_the_heads_of_a_layer_read(tiny, trace, account, terms):
    shown = parts(*called("--by", "source", "--layer", "2", "--top", "2"))
    _, grid, table, *_ = shown
    found = np.multiply(*source_contributions(tiny, trace, account.found, 2))
    largest = sorted(np.argsort(-np.abs(found.sum(axis=0)))[:2].tolist())
    assert_allclose(grid["values"], found[:, largest], atol=1e-5)
    assert grid["title"].endswith("read, the 2 that give or take most")
    assert column(table, "position") == largest
    whole = sums(shown)
    here = sum(value for name, value in terms.items() if name.startswith("layers.2.heads."))
    assert whole["tokens shown"] + whole["4 other tokens"] == pytest.approx(here, abs=1e-4)
    heads = sum(value for name, value in terms.items() if ".heads." in name)
    assert whole["other heads"] == pytest.approx(heads - here, abs=1e-4)


def test_tokens_that_one_head_reads(trace, terms, labels):
    found = parts(*called("--by", "source", "--layer", "2", "--head", "1", "--sort", "size"))
    table = found[1]
    assert np.all(np.diff(np.abs(column(table, "gives"))) <= 0)
    for position, token, weight, says, gives in rows(table):
        assert token == labels[position]
        expected = float(trace.layers[2].heads[1].weights[5, position])
        assert weight == pytest.approx(expected, abs=1e-6)
        assert gives == pytest.approx(weight * says, rel=1e-3, abs=1e-6)
    assert sum(column(table, "gives")) == pytest.approx(terms["layers.2.heads.1"], abs=1e-5)
    assert "weight x says" in notes(found)


def test_only_what_can_be_read_is_shown():
    table = parts(*called("--by", "source", "--at", "2"))[2]
    assert column(table, "position") == [0, 1, 2]


def test_a_long_text_is_sorted_by_size():
    text = " ".join([SENTENCE] * 8)
    shown = parts("attribute", text, "--by", "source")
    table = shown[2]
    assert len(table["rows"]) == 20
    grid = shown[1]
    assert grid["column_positions"] == sorted(column(table, "position"))
    assert grid["title"].endswith("read, the 20 that give or take most")
    given = dict(zip(column(table, "position"), column(table, "gives"), strict=True))
    expected = [given[i] for i in grid["column_positions"]]
    assert_allclose(np.sum(grid["values"], axis=0), expected, atol=1e-5)
    assert any(name.endswith(" other tokens") for name in sums(shown))


def test_a_pass_with_an_edit_has_a_term_for_it(terms):
    found = parts(*called("--edit", "layers.2.attn_out=zero", "--sort", "order"))
    table = dict(rows(found[1]))
    assert table["layers.0.heads.0"] == pytest.approx(terms["layers.0.heads.0"], rel=0.5)
    name = "layers.2.attn_out changed by --edit"
    pieces = [
        table[f"layers.2.{part}"] for part in (*map("heads.{}".format, range(4)), "attn.bias")
    ]
    assert table[name] == pytest.approx(-sum(pieces), abs=1e-4)
    assert abs(sums(found)["remainder"]) < 1e-5


def test_an_edit_is_shown_however_small_it_is():
    found = parts(*called("--edit", "layers.2.mlp_out[5,3]=0.1", "--top", "2"))
    (_, _, edit, other) = rows(found[1])
    assert edit[0] == "layers.2.mlp_out changed by --edit"
    assert abs(edit[1]) < 0.1
    assert other[0] == "29 other parts"


def test_an_edit_within_a_layer_has_a_column():
    found = parts(*called("--edit", "layers.2.attn_out=zero", "--by", "layer"))
    columns = ["layer", "attention", "feed forward", "edits", "together"]
    assert list(found[1]["rows"][0]) == columns
    for layer, attention, mlp, edits, together in rows(found[1]):
        assert edits == pytest.approx(-attention if layer == 2 else 0, abs=1e-5)
        assert together == pytest.approx(attention + mlp + edits, abs=1e-5)
    *apart, total, _, _ = sums(found).values()
    assert sum(apart) == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize("by", ["layer", "head", "mlp", "neuron", "source"])
def test_the_edit_is_told_in_every_view(by):
    found = parts(
        *called("--edit", "layers.2.heads.1.out=zero", "--edit", "ln_final.out=1", "--by", by)
    )
    whole = sums(found)
    assert "ln_final.out changed by --edit" in whole
    assert ("layers.2.heads.1.out changed by --edit" in whole) == (by == "source")
    *apart, total, _, remainder = whole.values()
    assert abs(remainder) < 1e-5
    assert sum(apart) == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize(
    ("edits", "args", "rows"),
    [
        (["layers.3.heads.3.out=0"], ["--layer", "3", "--head", "3"], ["layers.3.heads.3.out"]),
        (["layers.3.heads.3.out=0"], ["--layer", "3"], ["layers.3.heads.3.out"]),
        (["layers.3.heads.3.out=0"], ["--layer", "3", "--head", "2"], []),
        (["layers.3.heads.3.out=0"], ["--layer", "2"], []),
        (["layers.3.heads.*.out=*2"], ["--layer", "3"], ["layers.3.heads.*.out"]),
        (["layers.2.attn_concat=*2"], [], ["layers.2.attn_concat"]),
        (["layers.2.heads.1.v=0", "layers.0.heads.0.weights=0"], [], []),
        (
            ["layers.*.heads.0.out=0"],
            [],
            [f"layers.{layer}.heads.0.out" for layer in range(4)],
        ),
        (
            ["layers.1.heads.2.out=0", "layers.1.attn_concat=*2"],
            [],
            ["layers.1.heads.*.out and layers.1.attn_concat"],
        ),
    ],
)
def test_what_an_edit_made_of_heads_has_the_name_of_the_value(edits, args, rows):
    told = [word for text in edits for word in ("--edit", text)]
    whole = sums(parts(*called("--by", "source", *args, *told)))
    said = [name for name in whole if name.endswith("changed by --edit")]
    assert said == [f"{name} changed by --edit" for name in rows]
    *apart, total, _, remainder = whole.values()
    assert abs(remainder) < 1e-5
    assert sum(apart) == pytest.approx(total, abs=1e-5)


def test_a_head_that_is_zeroed_gives_nothing():
    zero = ["--edit", "layers.3.heads.3.out=0"]
    whole = sums(parts(*called("--by", "source", "--layer", "3", "--head", "3", *zero)))
    edited = whole["layers.3.heads.3.out changed by --edit"]
    assert edited == pytest.approx(-whole["tokens shown"], abs=1e-5)


@pytest.mark.parametrize("model", ["gpt2", "bloom-after-norm", "gemma2"])
def test_one_number_has_one_name_in_every_view(model):
    named, called_so = {}, {}
    for by in ("part", "layer", "head", "mlp", "neuron", "source"):
        args = ["--ids", "1,2,3", "-m", family_folder(model), "--by", by, "--dtype", "float64"]
        found = parts("attribute", *args, *["--top", "500"] * (by == "part"))
        lines = rows(found[1]) if by == "part" else sums(found).items()
        for name, value in lines:
            if name not in ("units shown", "tokens shown"):  # of so many
                assert named.setdefault(name, value) == pytest.approx(value, abs=1e-9)
            if by not in ("neuron", "source"):
                called_so.setdefault(round(value, 9), set()).add(name)
    sizes = {"all parts", "logit", "logit before the cap"}
    assert all(len(names - sizes) <= 1 for value, names in called_so.items() if abs(value) > 1e-6)


@pytest.mark.parametrize(
    ("by", "names"),
    [
        (["part"], ["asked", "parts", "total"]),
        (["layer"], ["asked", "layers", "sums", "total"]),
        (["head"], ["asked", "heads", "sums", "total"]),
        (["mlp"], ["asked", "feed_forward", "sums", "total"]),
        (["neuron"], ["asked", "units", "sums", "total"]),
        (["source"], ["asked", "tokens_by_layer", "tokens", "sums", "total"]),
        (["source", "-l", "1"], ["asked", "tokens_by_head", "tokens", "sums", "total"]),
        (["source", "-l", "1", "-H", "1"], ["asked", "tokens", "sums", "total"]),
    ],
)
def test_parts_have_names(by, names):
    found = parts(*called("--by", *by))
    assert [part["name"] for part in found if part["kind"] != "note"] == names


def test_people_read_the_position_in_the_title():
    lines = run_cli(["attribute", SENTENCE]).lines
    assert lines[lines.index("After token 5 \u00b7her") + 1].split()[:3] == ["asked", "token", "id"]


def test_a_capped_model_is_split_before_its_cap():
    folder = family_folder("gemma2")
    trace = gptscope.trace(gptscope.load(folder), [1, 2, 3])
    found = parts("attribute", "--ids", "1,2,3", "--model", folder, "--answer", "7")
    assert column(found[0], "logit before its cap") == [
        pytest.approx(float(trace.logits_before_cap[2, 7]), rel=1e-5)
    ]
    assert list(sums(found))[-3:] == ["all parts", "logit before the cap", "remainder"]
    assert "before its soft cap" in notes(found)
    assert "before its soft cap" not in notes(parts(*called()))


def test_values_without_biases_need_no_word_on_them():
    folder = family_folder("llama")
    assert "values" not in notes(parts("attribute", "--ids", "1,2,3", "--model", folder))
    assert "its weights sum to 1" in notes(parts(*called()))
    assert "its weights sum to 1" not in notes(parts(*called("--by", "mlp")))


@pytest.mark.parametrize(
    ("args", "sentence", "hint"),
    [
        (["--layer", "1"], "--layer does not go with --by part", "--by neuron or source"),
        (["--by", "head", "--sort", "size"], "--sort does not go with --by head", "--by part or"),
        (["--by", "mlp", "--top", "3"], "--top does not go with --by mlp", "--by part or neuron"),
        (["--by", "neuron", "--head", "0"], "--head does not go with --by neuron", "--by source"),
        (["--by", "source", "--head", "0"], "--head needs a layer", "--layer 0"),
        (["--by", "source", "--layer", "4"], "layer 4 is out of range", ""),
        (["--by", "source", "--layer", "0", "--head", "9"], "head 9 is out of range", ""),
        (["--at", "6"], "token 6 is out of range", ""),
        (["--against", TOYS], "the answer and --against are the same token", ""),
    ],
)
def test_what_cannot_be_asked(args, sentence, hint):
    said, advice = refused(run_cli(called(*args)), 2)
    assert said.startswith(sentence)
    assert advice.startswith(hint)


@pytest.mark.parametrize("answer", [[], ["--answer", "2"]])
def test_what_is_not_finite_is_refused(folder, answer):
    name = "transformer.h.1.mlp.c_proj.bias"
    bias = tensors_of("gpt2")[name].copy()
    bias[0] = np.nan
    broken = str(folder(tensors={name: bias}))
    said, _ = refused(run_cli(["attribute", "--ids", "1,2", "-m", broken, *answer]), 1)
    assert said == "the logits after token 1 <id 2> hold NaN, so no token can be rated"


@pytest.mark.parametrize("command", ["attribute", "neurons"])
def test_an_infinite_logit_is_refused(command):
    edited = run_cli([command, SENTENCE, "--answer", TOYS, "--edit", "logits[:,3]=inf"])
    said, _ = refused(edited, 1)
    assert said == "the logits after token 5 \u00b7her hold infinity, so no token can be rated"


def test_a_token_is_shown_safely_in_titles():
    found = run_cli(["attribute", "a\u202eb\x1b[31m", "--by", "neuron"])
    assert found.status == 0
    assert "\u202e" not in found.text
    assert "\x1b[31m" not in found.text
