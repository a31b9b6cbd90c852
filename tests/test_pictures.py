from pathlib import Path

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from gptscope.app import COMMANDS
from gptscope.commands.tour import CardName
from tests.helpers.cli import run_cli
from tests.helpers.printed import without_noise

TEXT = "Lily wanted to play"
PICTURES = {
    **{f"tour-{card}": ["tour", TEXT, "--card", card] for card in CardName},
    "tour": ["tour", "--model", "toy", "the cat eats the fish and the dog sees"],
    "tour-of-a-rotary-model": ["tour", "--model", "tests/golden/toy-rotary", "--ids", "3,1,4,1,5"],
    "tour-of-a-post-norm-model": ["tour", "--model", "tests/golden/toy-post", "--ids", "3,1,4"],
    "tour-without-mask-and-positions": [
        *("tour", "--model", "tests/golden/toy-unmasked", "--ids", "3,1,4")
    ],
    "tokens": ["tokens", 'Lily\'s "caf\u00e9"\n\t\u6f22  said [b]no[/b]'],
    "embeddings": ["embeddings", "Lily ran"],
    "embeddings-of-one-token": ["embeddings", TEXT, "--token", "2", "--dims", "0:6"],
    "positions": ["positions", "--model", "toy", "--first", "8"],
    "positions-learned": ["positions", "--at", "0,1,2,64", "--dims", "0:6"],
    "norms": ["norms", "Lily ran", "--layer", "1"],
    "attention": ["attention", TEXT, "--layer", "1", "--head", "2"],
    "attention-that-is-cut": ["attention", f"{TEXT} with her dog and they ran", "--head", "0"],
    "attention-of-a-layer": ["attention", TEXT, "--layer", "1"],
    "attention-of-all-heads": ["attention", TEXT, "--all", "--no-first"],
    "attention-in-words": ["attention", TEXT, "--head", "0", "--top", "2"],
    "attention-of-the-last": ["attention", TEXT, "--head", "0", "--last", "2"],
    "attention-of-one-token": ["attention", TEXT, "--head", "1", "--token", "3"],
    "mlp": ["mlp", TEXT, "--layer", "1"],
    "residual": ["residual", TEXT],
    "heads": ["heads", f"{TEXT} and wanted to run"],
    "heads-by-score": ["heads", TEXT, "--model", "llama-tiny", "--score", "previous"],
    "heads-of-weights": ["heads", "--weights-only", "--model", "toy", "--top", "4"],
    "heads-of-one": ["heads", TEXT, "--model", "llama-tiny", "--layer", "1", "--head", "0"],
    "next": ["next", TEXT],
    "next-with-settings": ["next", TEXT, "--temperature", "0.7", "--top-k", "5", "--top", "7"],
    "next-after-every-token": ["next", TEXT, "--at", "all"],
    "lens": ["lens", TEXT],
    "lens-of-one-token": ["lens", TEXT, "--at", "-1", "--answer", "<id 331>", "--mid"],
    "lens-ranks": ["lens", TEXT, "--show", "rank"],
    "attribute": ["attribute", TEXT, "--answer", " with", "--against", " in"],
    "attribute-by-layer": ["attribute", TEXT, "--by", "layer"],
    "attribute-by-head": ["attribute", TEXT, "--by", "head"],
    "attribute-by-feed-forward": ["attribute", TEXT, "--by", "mlp", "--sort", "size"],
    "attribute-by-unit": ["attribute", TEXT, "--by", "neuron", "--top", "4"],
    "attribute-by-token": ["attribute", TEXT, "--by", "source"],
    "attribute-of-a-head": ["attribute", TEXT, "--by", "source", "--layer", "2", "--head", "1"],
    "attribute-with-an-edit": ["attribute", TEXT, "--edit", "layers.2.mlp_out=zero", "--top", "5"],
    "sweep": ["sweep", "Lily saw a cat. The", "--answer", " cat", "--against", " dog"],
    "sweep-of-layers": ["sweep", TEXT, "--what", "mlp", "--with", "zero", "--metric", "kl"],
    "sweep-of-patches": [
        *("sweep", "--clean", "Lily saw a cat. The", "--corrupt", "Lily saw a dog. The"),
        *("--what", "resid", "--direction", "both", "--top", "3"),
        *("--precision", "2"),
    ],
    "sweep-of-paths": [
        *("sweep", "--clean", "Lily saw a cat. The", "--corrupt", "Lily saw a dog. The"),
        *("--from", "layers.*.heads.*", "--to", "layers.3.heads.1.v", "--top", "3"),
        *("--precision", "2"),
    ],
    "generate": ["generate", TEXT, "--greedy", "-n", "30"],
    "generate-with-steps": ["generate", TEXT, "--seed", "3", "-n", "4", "--steps"],
    "explain-a-weight": ["explain", TEXT, "layers.1.heads.2.weights[3,1]"],
    "explain-a-norm": ["explain", TEXT, "layers.1.ln1.out[3,5]"],
    "explain-a-unit": ["explain", TEXT, "layers.1.mlp_act[3,5]"],
    "explain-a-head": ["explain", TEXT, "layers.1.heads.2.out[3,5]"],
    "explain-the-stream": ["explain", TEXT, "layers.3.output[3,5]"],
    "explain-a-logit": ["explain", TEXT, "logits[3]"],
    "explain-a-probability": ["explain", TEXT, "probabilities[3]", "--top-k", "5"],
    "explain-a-rotary-query": [
        *("explain", "--model", "tests/golden/toy-rotary", "--ids", "3,1,4"),
        "layers.1.heads.0.q[2,3]",
    ],
    "compare": ["compare", TEXT, "--edit", "layers.1.heads.0.out=zero"],
    "compare-two-answers": [
        *("compare", TEXT, "--edit", "layers.2.mlp_out[2]=0", "--answer", "<id 331>"),
        *("--against", "<id 266>", "--at", "2", "--top", "3"),
    ],
    "compare-nothing": ["compare", TEXT, "--edit", "layers.2.mlp_out=*1", "--top", "2"],
    "steer": ["steer", "--from", "Tom was happy", "--to", "Tom was sad", "--layer", "2"],
    "steer-of-pairs": [
        *("steer", "--from", "Tom was happy", "--from", "Her mom was very happy"),
        *("--to", "Tom was sad", "--to", "Her mom was very sad", "--layer", "2", "--top", "4"),
    ],
    "neurons": ["neurons", TEXT, "--top", "5"],
    "neurons-against": ["neurons", TEXT, "--answer", "<id 322>", "--against", "<id 331>"],
    "neurons-one-unit": [
        *("neurons", "Lily ran to her", "--layer", "2", "--unit", "204", "--top", "5")
    ],
    "neurons-one-gated-unit": [
        *("neurons", "--model", "llama-tiny", TEXT, "--layer", "1", "--unit", "3", "--top", "3")
    ],
    "neighbours": ["neighbours", "<id 384>"],
    "neighbours-of-several": ["neighbours", "<id 384>", "<id 703>", "<id 462>", "--centre"],
    "neighbours-of-a-sum": ["neighbours", "<id 384> - <id 462> + <id 494>", "<id 703>"],
    "surprise": ["surprise", f"{TEXT} with her dog"],
    "surprise-the-worst": ["surprise", TEXT, "--bos", "--top", "2", "--window", "3"],
    "surprise-of-two-models": ["surprise", f"{TEXT} with her", "--against", "llama-tiny"],
    "experiment-mask": ["experiment mask"],
    "experiment-order": ["experiment order", TEXT],
    "params-of-a-preset": ["params", "--preset", "gpt2-xl", "--untied"],
    "params-of-a-model": ["params", "--model", "toy"],
    "params": ["params", "--d", "768", "--L", "12"],
    "check": ["check", "toy"],
    "diff": ["diff", "toy", "toy", "--ids", "1,2,5,1", "--top", "6"],
    "models": ["models"],
    "info": ["info", "tiny"],
    "info-of-a-rotary-model": ["info", "tests/golden/toy-rotary"],
    "weights": ["weights", "tiny", "*h.0.a*"],
    "weights-by-part": ["weights", "tiny", "--by", "part", "--sort", "std", "--top", "6"],
    "weights-of-heads": ["weights", "toy", "--svd"],
    "weights-of-a-table": ["weights", "tiny", "--table", "tokens", "--top", "3"],
    "trace": ["trace", TEXT, "--keep", "layers.0.*"],
}
COLOURED = [
    "attention",
    "attention-of-all-heads",
    "embeddings",
    "next",
    "positions",
    "surprise",
    "tour-masked-attention",
]
TRUECOLOR = {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color"}


class OneFile(SingleFileSnapshotExtension):
    """A text file for each picture."""

    _write_mode = WriteMode.TEXT
    _file_extension = file_extension = "txt"  # before and since syrupy 5


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[1])  # some pictures show the path of a model


@pytest.fixture
def picture(snapshot):
    return snapshot.use_extension(OneFile)


def drawn(name, env):
    result = run_cli(PICTURES[name], env=env)
    assert result.status == 0
    return without_noise("\n".join(line.rstrip() for line in result.lines))


def test_every_command_has_a_picture():
    assert {args[0] for args in PICTURES.values()} == set(COMMANDS)


@pytest.mark.parametrize("columns", ["80", "40"])
@pytest.mark.parametrize("name", PICTURES)
def test_plain(name, columns, picture):
    assert drawn(name, {"COLUMNS": columns}) == picture


@pytest.mark.parametrize("name", COLOURED)
def test_colours(name, picture):
    shown = drawn(name, {"COLUMNS": "80", **TRUECOLOR})
    assert shown.replace("\x1b", "\u241b") == picture
