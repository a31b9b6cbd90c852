import random
import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gptscope.errors import ModelError
from gptscope.model.checkpoint import open_checkpoint
from gptscope.model.find import find_weights
from gptscope.model.formats.llama2c import read_sizes
from gptscope.model.formats.llama2c_tokens import find_tokens, read_pieces
from tests.helpers.cli import refused, run_cli

SMALL = {"d": 8, "f": 12, "layers": 2, "heads": 2, "kv": 1, "vocab": 300, "ctx": 6}
STORIES = Path(__file__).parents[3] / "shared" / "models" / "stories260K"
real = pytest.mark.skipif(not STORIES.is_dir(), reason="stories260K is not there")
NORMS = ["input_layernorm", "post_attention_layernorm"]
MATRICES = [f"self_attn.{x}_proj" for x in "qkvo"] + [
    f"mlp.{x}_proj" for x in ("gate", "down", "up")
]
GROUP = 4


def arrays_of(sizes, seed=0):
    rng = np.random.default_rng(seed)
    d, f, kv = sizes["d"], sizes["f"], sizes["d"] // sizes["heads"] * sizes["kv"]
    shapes = {"model.embed_tokens": (sizes["vocab"], d), "model.norm": (d,)}
    shapes |= {"lm_head": (sizes["vocab"], d)}
    for i in range(sizes["layers"]):
        inner = [(d,), (d,), (d, d), (kv, d), (kv, d), (d, d), (f, d), (d, f), (f, d)]
        names = (f"model.layers.{i}.{name}" for name in NORMS + MATRICES)
        shapes |= dict(zip(names, inner, strict=True))
    return {f"{n}.weight": rng.standard_normal(s).astype("f4") for n, s in shapes.items()}


def in_layers(sizes, names):
    return [f"model.layers.{i}.{name}.weight" for name in names for i in range(sizes["layers"])]


def order_of(sizes, version):
    # As export.py writes them.
    tokens, norm = "model.embed_tokens.weight", "model.norm.weight"
    if version:
        return [*in_layers(sizes, NORMS), norm, tokens, *in_layers(sizes, MATRICES)]
    inner = [NORMS[0], *MATRICES[:4], NORMS[1], *MATRICES[4:]]
    return [tokens, *in_layers(sizes, inner), norm]


def packed(x):
    groups = x.reshape(-1, GROUP)
    scales = np.abs(groups).max(axis=1) / np.float32(127)
    return np.round(groups / scales[:, None]).astype("i1"), scales


def llama2c_bytes(sizes, version=0, *, tied=True, seed=0):
    arrays = arrays_of(sizes, seed)
    seven = [sizes[key] for key in ("d", "f", "layers", "heads", "kv", "vocab", "ctx")]
    if version:
        head = struct.pack("<Ii7iB", 0x616B3432, version, *seven, tied)
        head = (head + struct.pack("<i", GROUP) * (version == 2)).ljust(256, b"\0")
    else:
        head = struct.pack("<7i", *seven[:5], seven[5] if tied else -seven[5], seven[6])
    names = order_of(sizes, version)
    parts = [arrays[name] for name in names]
    if not version:
        parts.append(np.full((sizes["ctx"], sizes["d"] // sizes["heads"]), 9, "f4"))
    if not tied:
        parts.append(arrays["lm_head.weight"])
    body = b"".join(
        b"".join(part.tobytes() for part in packed(x)) if version == 2 and x.ndim == 2
        else x.tobytes()
        for x in parts
    )  # fmt: skip
    return head + body


def tokenizer_bytes(texts, scores=None):
    scores = scores or [-float(i) for i in range(len(texts))]
    body = b"".join(
        struct.pack("<fi", score, len(text.encode())) + text.encode()
        for text, score in zip(texts, scores, strict=True)
    )
    return struct.pack("<i", max(len(text) for text in texts)) + body


BYTES = ["<unk>", "\n<s>\n", "\n</s>\n", *(f"<0x{i:02X}>" for i in range(256))]
WORDS = ["a", "b", "ab", " ", " a", "\u00e9", *(chr(0x100 + i) for i in range(35))]


def written(folder, content, name="stories.bin"):
    (folder / name).write_bytes(content)
    return folder / name


# The weights


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("version", [0, 1])
def test_every_array_is_where_export_puts_it(tmp_path, version, tied):
    path = written(tmp_path, llama2c_bytes(SMALL, version, tied=tied))
    checkpoint = open_checkpoint(path)
    expected = arrays_of(SMALL)
    if tied:
        del expected["lm_head.weight"]
    assert set(checkpoint.arrays) == set(expected)
    for name, x in expected.items():
        np.testing.assert_array_equal(checkpoint.arrays[name], x, strict=True)
    assert checkpoint.files == (path,)
    assert checkpoint.config["tie_word_embeddings"] is tied


def test_groups_of_int8(tmp_path):
    checkpoint = open_checkpoint(written(tmp_path, llama2c_bytes(SMALL, 2)))
    for name, x in arrays_of(SMALL).items():
        if name == "lm_head.weight":
            continue
        table = checkpoint.arrays[name]
        assert (table.shape, table.dtype) == (x.shape, np.dtype("f4"))
        numbers, scales = packed(x) if x.ndim == 2 else (x[:, None], np.ones(len(x), "f4"))
        wide = (numbers * scales[:, None]).reshape(x.shape)
        np.testing.assert_array_equal(np.asarray(table), wide, strict=True)
        np.testing.assert_array_equal(table[1:3], wide[1:3], strict=True)
        np.testing.assert_array_equal(table[np.array([2, 0, 2])], wide[[2, 0, 2]], strict=True)


def test_the_config(tmp_path):
    assert open_checkpoint(written(tmp_path, llama2c_bytes(SMALL))).config == {
        "model_type": "llama",
        "hidden_size": 8,
        "intermediate_size": 12,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 4,
        "vocab_size": 300,
        "max_position_embeddings": 6,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "rope_interleaved": True,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": [1, 2],
    }


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x" * 40,
        b"PK\x03\x04" + bytes(100),
        b"\x80\x02" + bytes(100),
        llama2c_bytes(SMALL)[:-1],
        llama2c_bytes(SMALL) + b"\0",
        llama2c_bytes(SMALL, 1)[:-4],
        llama2c_bytes(SMALL | {"heads": 8}),
        llama2c_bytes(SMALL, 2)[:4] + struct.pack("<i", 3) + llama2c_bytes(SMALL, 2)[8:],
        struct.pack("<7i", *[2**31 - 1] * 7) + bytes(40),
        struct.pack("<7i", *[-1] * 7) + bytes(40),
        bytes(100),
    ],
    ids=range(12),
)
def test_what_is_none_of_these_is_refused_as_before(tmp_path, content):
    path = written(tmp_path, content, "pytorch_model.bin")
    assert read_sizes(path) is None
    with pytest.raises(ModelError, match=r"is not a \.bin file of llama2\.c"):
        open_checkpoint(path)
    said, hint = refused(run_cli(["next", "x", "-m", str(path)]), 1)
    assert said == f"{path} may run code when it is opened, so it is not opened"
    assert "save_file(" in hint


def test_groups_that_do_not_divide_a_row(tmp_path):
    content = bytearray(llama2c_bytes(SMALL | {"f": 16}, 2))
    content[37:41] = struct.pack("<i", 16)  # the same bytes in fewer groups, and a shorter file
    path = written(tmp_path, bytes(content))
    assert read_sizes(path) is None


def test_random_bytes_and_headers(tmp_path):
    rng = random.Random(0)  # noqa: S311
    good = llama2c_bytes(SMALL, 1)
    for _ in range(300):
        content = bytearray(rng.choice((good, llama2c_bytes(SMALL))))
        for _ in range(rng.choice((1, 3))):
            content[rng.randrange(48)] = rng.randrange(256)
        path = written(tmp_path, bytes(content))
        if read_sizes(path) is None:
            with pytest.raises(ModelError, match=r"is not a \.bin file"):
                open_checkpoint(path)
        else:
            assert open_checkpoint(path).arrays


# The tokenizer


def run_c(texts, scores, text):
    """`encode` of run.c."""
    vocab = {piece: i for i, piece in reversed([*enumerate(texts)])}
    ids = [1] + [vocab[" "]] * bool(text)
    for char in text:
        ids += [vocab[char]] if char in vocab else [byte + 3 for byte in char.encode()]
    while True:
        pairs = [
            (scores[vocab[both]], -i, vocab[both])
            for i, both in enumerate(texts[a] + texts[b] for a, b in pairwise(ids))
            if both in vocab
        ]
        if not pairs:
            return ids
        _, i, merged = max(pairs)
        ids[-i : 2 - i] = [merged]


@pytest.mark.parametrize("text", ["", "a", "ab", "aab b", "\u00e9\u4e16 a", " ", "  ab", "\u2581"])
def test_the_ids_of_run_c(tmp_path, text):
    path = written(tmp_path, llama2c_bytes(SMALL))
    written(tmp_path, tokenizer_bytes(BYTES + WORDS), "tokenizer.bin")
    scores = [-float(i) for i in range(300)]
    ids = open_checkpoint(path).make_tokenizer().encode(text).ids
    assert ids == run_c(BYTES + WORDS, scores, text)


def test_the_tokenizer_of_the_right_size_comes_first(tmp_path):
    path = written(tmp_path, b"", "stories.bin")
    assert find_tokens(path, 300) is None
    for name in ("token9.bin", "tokenizer.bin", "tok300.bin"):
        assert find_tokens(path, 300) != tmp_path / name
        written(tmp_path, b"", name)
        assert find_tokens(path, 300) == tmp_path / name


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is not a tokenizer of 300 pieces"),
        (tokenizer_bytes(BYTES + WORDS)[:-1], "is not a tokenizer of 300 pieces"),
        (tokenizer_bytes(BYTES + WORDS) + b"\0", "is not a tokenizer of 300 pieces"),
        (tokenizer_bytes(WORDS), "is not a tokenizer of 300 pieces"),
        (struct.pack("<ifi", 1, 0, -1) * 300, "is not a tokenizer of 300 pieces"),
        (tokenizer_bytes(WORDS * 7 + WORDS[:13]), "has no piece for every byte"),
    ],
    ids=range(6),
)
def test_a_broken_tokenizer(tmp_path, content, why):
    path = written(tmp_path, llama2c_bytes(SMALL))
    written(tmp_path, content, "tokenizer.bin")
    checkpoint = open_checkpoint(path)
    with pytest.raises(ModelError, match=why):
        checkpoint.make_tokenizer()


# The real one


@real
def test_stories260k():
    path = find_weights(STORIES)
    checkpoint = open_checkpoint(path)
    assert path.name == "stories260K.bin"
    assert len(checkpoint.arrays) == 5 * 9 + 2
    assert checkpoint.config["num_key_value_heads"] == 4
    assert checkpoint.arrays["model.embed_tokens.weight"].shape == (512, 64)
    ids = checkpoint.make_tokenizer().encode("Once upon a time, Lily").ids
    assert ids == [1, 403, 407, 261, 378, 432, 317]


@real
def test_stories260k_texts_are_cut_as_by_run_c():
    texts, scores = read_pieces(STORIES / "tok512.bin", 512)
    tokenizer = open_checkpoint(STORIES / "stories260K.bin").make_tokenizer()
    rng = random.Random(0)  # noqa: S311
    parts = [*texts[259:], *'  abc.\u00e9\u20ac\n"\u2581\U0001f600']
    for _ in range(500):
        text = "".join(rng.choices(parts, k=rng.randrange(40)))
        assert tokenizer.encode(text).ids == run_c(texts, scores, text)
