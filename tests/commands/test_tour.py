import importlib
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gptscope
from gptscope.commands.session import Run
from gptscope.commands.tour import CardName, add_and_norm, made, repeated_blocks
from gptscope.commands.tour.card import Walk
from gptscope.engine.forward import WIRINGS
from tests.helpers.cli import SENTENCE, asked, parts, rows, run_cli, spawn
from tests.helpers.families import family_folder
from tests.helpers.folders import CASES, GOLDEN, ids_of
from tests.helpers.micro import micro_model, sizes
from tests.helpers.variants import CHANGES, WIRED

FACTS = ["what", "2017 paper", "shapes", "formula", "python"]
TITLES = [
    "Inputs",
    "Embedding",
    "Position",
    "Add and norm",
    "Masked attention",
    "Feed forward",
    "Repeated blocks",
    "Final norm",
    "Linear",
    "Softmax",
    "Output",
]
TOURS = {
    "tiny": [SENTENCE],
    "toy": ["--model", "toy", "the cat eats the fish and"],
    "one token": ["A"],
    "float64": ["--dtype", "float64", SENTENCE],
} | {
    case: ["--model", str(GOLDEN / case), "--ids", ",".join(map(str, ids_of(case)))]
    for case in CASES
}
FAMILIES = [
    "bloom",
    "bloom-after-norm",
    "gemma2",
    "gpt_neo",
    "gptj",
    "granite",
    "granite-bias",
    "llama-grouped",
    "llama-one-group",
    "llama-yarn",
    "olmo2",
    "openai-gpt",
    "opt-350m",
    "opt-no-last-norm",
    "phi-qk-norm",
    "qwen2-window",
    "smollm3",
]
TOURS |= {
    case: ["--model", family_folder(case), "--ids", ",".join(map(str, range(1, 21)))]
    for case in FAMILIES
}


@pytest.fixture(scope="module", params=TOURS)
def tour(request):
    return asked("tour", *TOURS[request.param])


@pytest.fixture(scope="module")
def named(tour):
    return scope(tour)


def scope(tour):
    names = {}
    exec(tour["parts"][1]["facts"]["first"], names)  # noqa: S102 - what the program prints
    return names


def cards(tour):
    found = {}
    for part in tour["parts"][2:]:
        if part["kind"] == "facts" and list(part["facts"]) == FACTS:
            found[list(CardName)[len(found)]] = [part]
        else:
            list(found.values())[-1].append(part)
    return found


def values(tour, card):
    return cards(tour)[card][-1]


def python(tour, card, names):
    return eval(cards(tour)[card][0]["facts"]["python"], names)  # noqa: S307 - the same


def test_eleven_cards_in_the_order_of_the_pass():
    tour = asked("tour", SENTENCE)
    titles = [card[0]["title"] for card in cards(tour).values()]
    assert titles == [f"{n}. {title}" for n, title in enumerate(TITLES, 1)]
    assert len(CardName) == 11


def test_sizes(tour, named):
    model, spec = tour["model"], named["model"].spec
    own = {"key-value heads (G)": spec.n_kv_heads}
    shared = own if spec.n_kv_heads < spec.n_heads else {}
    assert (
        tour["parts"][0]["facts"]
        == {
            "tokens (T)": len(tour["input"]["ids"]),
            "numbers per token (d)": model["d_model"],
            "blocks (L)": model["n_layers"],
            "heads (H)": model["n_heads"],
            "numbers per head (d_h)": model["d_head"],
            "feed-forward width (F)": model["d_ff"],
            "vocabulary (V)": model["n_vocab"],
            "longest text": model["n_ctx"],
        }
        | shared
    )


def test_every_card_lives_in_a_file_of_its_name():
    for name in CardName:
        assert importlib.import_module(f"gptscope.commands.tour.{name.name}").card.__doc__
        assert name.value == name.name.replace("_", "-")


@pytest.mark.parametrize("name", CardName)
def test_one_card_alone(name):
    tour = asked("tour", SENTENCE)
    sizes, first, *card = parts("tour", SENTENCE, "--card", name)
    assert card == cards(tour)[name]
    assert [sizes, first] == tour["parts"][:2]


def test_card_names_are_completed_by_the_shell():
    env = {
        "_GPTSCOPE_COMPLETE": "complete_bash",
        "COMP_WORDS": "gptscope tour --card fi",
        "COMP_CWORD": "3",
    }
    assert spawn([], env=env).text.split() == ["final-norm"]


def test_every_line_of_python_runs(tour, named):
    for name in cards(tour):
        assert python(tour, name, named) is not None


def dims(rows):
    return np.array([[v for k, v in row.items() if k.startswith("dim ")] for row in rows])


def table(tour, card, at=-1):
    return cards(tour)[card][at]["rows"]


def test_python_of_the_embedding_and_position(tour, named):
    n, trace = min(len(tour["input"]["ids"]), 6), named["trace"]
    rows = python(tour, CardName.embedding, named)
    assert_allclose(dims(table(tour, CardName.embedding)), rows[:n, :4], rtol=1e-6)
    assert_allclose(rows, trace.token_embeddings, rtol=1e-6)


def test_python_of_the_position(tour, named):
    model, made = named["model"], python(tour, CardName.position, named)
    shown = table(tour, CardName.position)
    if model.spec.positions == "alibi":
        assert [row["slope"] for row in shown] == list(made)
        assert [row["off at distance 10"] for row in shown] == [10 * slope for slope in made]
        return
    seen = made[-1][:4]
    turning = next((b.attention.turning for b in model.blocks if b.attention.turning), None)
    if turning:
        half = len(turning.speeds)
        seen = made[-1][[0, half, 1, half + 1]]
    assert_allclose(dims(shown)[-1], seen, rtol=1e-6)


def test_python_of_add_and_norm(tour, named):
    trace, (*parts, total) = named["trace"], dims(table(tour, CardName.add_and_norm, 1))
    layer, wiring = trace.layers[0], trace.spec.wiring
    assert_allclose(python(tour, CardName.add_and_norm, named), layer.ln1.out, atol=1e-5)
    assert_allclose(sum(parts), total, atol=1e-6)
    first = layer.ln1.out if wiring == "norm_in_stream" else layer.input
    assert_allclose(parts[0], first[-1][:4])
    after = {"post_norm": layer.input + layer.attn_out, "parallel": layer.output}.get(wiring)
    after = layer.resid_after_attn if after is None else after
    assert_allclose(total, after[-1][:4], atol=1e-6)


def test_python_of_the_attention(tour, named):
    grid = values(tour, CardName.masked_attention)["values"]
    n = len(grid)
    seen = np.array([[0 if v is None else v for v in row] for row in grid])
    weights = python(tour, CardName.masked_attention, named)
    assert_allclose(seen, weights[:n, :n], rtol=1e-4, atol=1e-6)
    assert_allclose(weights, named["trace"].layers[0].heads[0].weights, rtol=1e-4, atol=1e-6)


def test_python_of_the_blocks(tour, named):
    layer = named["trace"].layers[0]
    assert_allclose(python(tour, CardName.feed_forward, named), layer.mlp_out[-1], atol=1e-5)
    strongest = table(tour, CardName.feed_forward)[0]
    assert strongest["unit"] == np.abs(layer.mlp_act[-1]).argmax()
    lengths = [row["length out"] for row in table(tour, CardName.repeated_blocks)]
    assert_allclose(lengths, python(tour, CardName.repeated_blocks, named), rtol=1e-5)


def test_python_of_the_output(tour, named):
    logits = python(tour, CardName.linear, named)
    assert_allclose(logits, named["trace"].logits[-1], rtol=1e-4, atol=1e-5)
    top = table(tour, CardName.linear)
    assert_allclose([row["logit"] for row in top], np.sort(logits)[::-1][: len(top)], rtol=1e-5)
    chances = python(tour, CardName.softmax, named)
    shown = [row["probability"] for row in table(tour, CardName.softmax, 1)]
    assert_allclose(shown, np.sort(chances)[::-1][: len(top)], rtol=1e-5)
    assert python(tour, CardName.output, named) == top[0]["id"]


def test_python_of_the_last_norm(tour, named):
    card = cards(tour)[CardName.final_norm][0]
    out = python(tour, CardName.final_norm, named)
    model, trace = named["model"], named["trace"]
    if model.ln_final is None:
        assert card["title"] == "8. Final norm: none"
        np.testing.assert_array_equal(out, trace.layers[-1].output)
    else:
        assert_allclose(out, trace.ln_final.out, rtol=1e-4, atol=1e-5)


def test_means_and_spreads_are_those_of_the_lists(tour, named):
    norm, trace = values(tour, CardName.add_and_norm), named["trace"]
    read = trace.layers[0].input
    if trace.spec.wiring == "post_norm":
        read = read + trace.layers[0].attn_out
    if trace.spec.wiring == "norm_of_parts":
        read = trace.layers[0].attn_out
    means = [row["mean in"] for row in norm["rows"]]
    assert_allclose(means, read.mean(-1)[: len(means)], rtol=1e-3, atol=1e-6)


def test_what_is_not_shown_is_said(tour):
    n = len(tour["input"]["ids"])
    table = values(tour, CardName.inputs)
    assert table["title"] == ("" if n <= 6 else f"The first 6 of {n} tokens")
    assert len(table["rows"]) == min(n, 6)


def text_of(case, card):
    facts = cards(asked("tour", *TOURS[case]))[card][0]
    return " ".join([facts["title"], *facts["facts"].values()])


@pytest.mark.parametrize(
    ("case", "card", "words"),
    [
        ("tiny", "position", "learned row"),
        ("toy", "position", "It has no parameters"),
        ("toy-rotary", "position", "queries and keys are turned"),
        ("toy-rotary", "add_and_norm", "Zhang and Sennrich 2019"),
        ("toy-post", "repeated_blocks", "a norm makes a new list of the sum"),
        ("tiny", "masked_attention", "have no biases; here they have"),
        ("toy-unmasked", "position", "this model cannot tell orders apart"),
        ("tiny", "embedding", "As there, the same table"),
        ("toy-rotary", "embedding", "this model has another"),
        ("tiny", "linear", "the token table again"),
        ("toy-rotary", "linear", "not the token table (untied)"),
        ("toy-rotary", "add_and_norm", "root mean square"),
        ("toy-rotary", "add_and_norm", "then multiplied by a learned gain,"),
        ("toy-post", "add_and_norm", "Norm(x + Part(x))"),
        ("toy-post", "final_norm", "the block ends with one"),
        ("toy-unmasked", "masked_attention", "This model has no mask"),
        ("toy-post", "feed_forward", "relu(x W_1 + b_1) W_2 + b_2"),
        ("nanogpt", "feed_forward", "gelu(x W_1) W_2"),
        ("toy", "feed_forward", "the exact GELU"),
        ("tiny", "feed_forward", "form with tanh"),
        ("gpt2-unscaled", "masked_attention", "softmax(q k' * 1 + mask)"),
        ("nanogpt", "add_and_norm", "sqrt(variance + eps) * gain"),
        ("bloom", "embedding", "it is normed once (embed_norm)"),
        ("bloom", "position", "a score loses the head's slope"),
        ("bloom", "masked_attention", "- slope (t - s) + mask"),
        ("bloom-after-norm", "add_and_norm", "the sum starts from what the norm gives"),
        ("bloom-after-norm", "repeated_blocks", "a norm makes a new list of it"),
        ("gemma2", "embedding", "here as well"),
        ("gemma2", "add_and_norm", "one before and one after (Gemma 2, 2024)"),
        ("gemma2", "feed_forward", "a unit and its gate: GeGLU (Shazeer 2020)"),
        ("gemma2", "masked_attention", "Scores are capped softly at 3"),
        ("gemma2", "masked_attention", "in layer 0, itself and the 15 before it"),
        ("gemma2", "linear", "z = 0.5 tanh((x E') / 0.5)"),
        ("gpt_neo", "masked_attention", "q k' * 1 + mask"),
        ("gptj", "add_and_norm", "stand side by side"),
        ("gptj", "position", "number i + 3, by an angle"),
        ("gptj", "position", "Only the first 6 of 10 numbers turn."),
        ("gptj", "position", "In the file the two lie side by side."),
        ("gptj", "repeated_blocks", "both parts read it"),
        ("gptj", "linear", "Each token has a bias of its own"),
        ("granite", "repeated_blocks", "multiplied by 0.22 first"),
        ("granite-bias", "masked_attention", "out = (heads W_o + b) * 0.5"),
        ("granite", "linear", "Logits are multiplied by"),
        ("llama-grouped", "feed_forward", "two matrices make two lists"),
        ("llama-grouped", "feed_forward", "(silu(x W_g + b_g) * (x W_1 + b_1)) W_2 + b_2"),
        ("llama-grouped", "feed_forward", "SwiGLU (Shazeer 2020)"),
        ("llama-grouped", "masked_attention", "here 3 heads in a row share one pair"),
        ("llama-grouped", "masked_attention", "k, v [G, T, d_h] = [2, 20, 10]"),
        ("llama-one-group", "masked_attention", "share one pair of them (Shazeer 2019)"),
        ("llama-yarn", "position", "Turned lists are longer by 1.139"),
        ("olmo2", "add_and_norm", "x + Norm(Part(x))"),
        ("olmo2", "masked_attention", "queries and keys are normed before their product"),
        ("opt-350m", "embedding", "A learned matrix makes 20 numbers of them"),
        ("opt-350m", "linear", "z = (x W_d) E'"),
        ("opt-no-last-norm", "final_norm", "no norm after the last block."),
        ("qwen2-window", "masked_attention", "values have no biases; here they have"),
        ("smollm3", "position", "In layer 1 nothing turns."),
    ],
)
def test_the_words_follow_the_model(case, card, words):
    assert words in text_of(case, CardName[card])


def test_an_unmasked_model_is_not_said_to_hide_anything():
    assert "hidden, so" not in text_of("toy-unmasked", CardName.masked_attention)
    assert "mask)" not in text_of("toy-unmasked", CardName.masked_attention)


def test_the_likeliest_tokens_follow(tiny):
    ids = tiny.tokenizer.encode(SENTENCE)
    shown = values(asked("tour", SENTENCE), CardName.output)
    assert [row["id"] for row in shown["rows"]] == list(
        gptscope.generate(tiny, ids, 6, temperature=0).ids
    )


def test_a_full_context_has_no_room():
    ids = ",".join(["1"] * 18)
    shown = cards(asked("tour", "--model", "toy", "--ids", ids))[CardName.output]
    assert shown[-1]["text"] == (
        "The text is as long as this model can read: 18 tokens, no room for more"
    )


def test_a_text_from_a_file_is_opened_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a 'b'.txt").write_bytes("caf\u00e9\r\n".encode())
    tour = asked("tour", "--file", "a 'b'.txt")
    assert scope(tour)["ids"] == tour["input"]["ids"]


def test_a_file_whose_signs_were_mapped_is_given_as_it_was_fed(tmp_path):
    (tmp_path / "a.txt").write_text("\u201cLily\u201d ran", "utf-8")
    tour = json.loads(run_cli(["tour", "--file", str(tmp_path / "a.txt"), "-f", "json"]).out)
    assert tour["input"]["text"] == '"Lily" ran'
    assert scope(tour)["ids"] == tour["input"]["ids"]


def test_standard_input_is_given_as_ids():
    result = run_cli(["tour", "--file", "-", "--format", "csv"], stdin=b"Lily ran")
    assert "encode('Lily ran')" in result.text


@pytest.mark.parametrize("text", ["'\"\n\t\\", "\u202ex\x1b[0m", "it's \U0001f600"])
def test_a_strange_text_is_written_as_python(text):
    tour = asked("tour", "--", text)
    assert scope(tour)["ids"] == tour["input"]["ids"]
    first = tour["parts"][1]["facts"]["first"]
    assert first.isprintable() or set(first) - set(first.replace("\n", "")) == {"\n"}


def test_softmax_counts_the_rest():
    table, rest = cards(asked("tour", SENTENCE))[CardName.softmax][1:]
    assert rest["facts"]["all others"] == 4096 - 5
    total = sum(row["probability"] for row in table["rows"]) + rest["facts"]["their probability"]
    assert total == pytest.approx(1)
    assert rows(table)[0][0] == " toys"


def test_softmax_shows_every_step(tiny):
    table = cards(asked("tour", SENTENCE))[CardName.softmax][1]["rows"]
    logits = gptscope.trace(tiny, tiny.tokenizer.encode(SENTENCE)).logits[-1]
    for row in table:
        power = np.exp(row["logit"] - logits.max())
        assert_allclose(row["exp(logit - maximum)"], power, rtol=1e-5)
        assert_allclose(row["probability"], power / np.exp(logits - logits.max()).sum(), rtol=1e-5)


def test_units_above_zero_are_counted(tour, named):
    facts = cards(tour)[CardName.feed_forward][1]["facts"]
    layer, gated = named["trace"].layers[0], named["model"].blocks[0].mlp.gate is not None
    values = (layer.mlp_gate if gated else layer.mlp_act)[-1]
    counted = "gates open" if gated else "units above zero"
    assert facts == {counted: (values > 0).sum(), "of": len(values)}


def test_the_strongest_units_are_those_of_mlp():
    args = [*TOURS["llama-grouped"]]
    *_, expected = parts("mlp", *args, "--top", "5")
    *_, found = parts("tour", *args, "--card", "feed-forward")
    assert found["rows"] == expected["rows"]


def test_every_wiring_of_the_engine_is_told():
    assert add_and_norm.WHEN.keys() == repeated_blocks.WAYS.keys() == WIRINGS.keys()


@pytest.mark.parametrize("wiring", WIRED)
@pytest.mark.parametrize("change", ["none", *CHANGES])
def test_python_of_whatever_a_family_may_have(wiring, change):
    model = CHANGES.get(change, lambda same: same)(WIRED[wiring](micro_model(sizes(d_head=8))))
    p = Walk(Run(model, (1, 2, 3, 4, 5), None))
    names = {"gptscope": gptscope, "numpy": np, "model": model, "ids": [*p.run.ids]}
    names["trace"] = p.trace
    lines = {name: made(name, p).python for name in CardName}
    found = {name: eval(line, dict(names)) for name, line in lines.items()}  # noqa: S307
    layer = p.trace.layers[0]
    expected = {
        CardName.embedding: p.trace.token_embeddings,
        CardName.add_and_norm: layer.ln1.out,
        CardName.masked_attention: layer.heads[0].weights,
        CardName.feed_forward: layer.mlp_out[-1],
        CardName.linear: p.trace.logits[-1],
    }
    for name, values in expected.items():
        assert_allclose(found[name], values, rtol=1e-4, atol=1e-5, err_msg=name)
    if model.ln_final is not None:
        assert_allclose(found[CardName.final_norm], p.trace.ln_final.out, rtol=1e-4, atol=1e-5)
