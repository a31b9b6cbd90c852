import random
import struct
import subprocess
import sys

import numpy as np
import pytest

from gptscope.errors import ModelError
from gptscope.model.checkpoint import open_checkpoint
from gptscope.model.dtypes import BF16, widen
from gptscope.model.formats.gguf_dialects import DIALECTS
from gptscope.model.formats.gguf_tokens import RULES
from tests.helpers.folders import bf16_bits

gguf = pytest.importorskip("gguf")
quants = pytest.importorskip("gguf.quants")
F32 = np.dtype("float32")
WRITTEN = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4"]
READ = ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "IQ2_XS", "IQ3_S", "IQ1_M"]
TEXTS = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
TEXTS += ["\u2581", "a", "b", "ab", "\u2581a", "\u2581ab", "<think>"]


def file_of(folder, arch="llama", tensors=None, said=None, tokens=None, kinds=None):
    """A GGUF file as llama.cpp's own package writes it."""
    path = folder / "a.gguf"
    writer = gguf.GGUFWriter(path, arch)
    for key, value in (said or {}).items():
        add = {float: writer.add_float32, int: writer.add_uint32, bool: writer.add_bool}
        if isinstance(value, list):
            writer.add_array(f"{arch}.{key}", value)
        else:
            add.get(type(value), writer.add_string)(f"{arch}.{key}", value)
    for key, value in (tokens or {}).items():
        kind = {int: writer.add_uint32, bool: writer.add_bool, str: writer.add_string}
        kind.get(type(value), writer.add_array)(f"tokenizer.ggml.{key}", value)
    for name, x in (tensors or {"token_embd.weight": np.ones((3, 32), "f4")}).items():
        kind = (kinds or {}).get(name)
        writer.add_tensor(name, x, raw_dtype=kind and gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def refused(path, why):
    with pytest.raises(ModelError, match=why) as fault:
        open_checkpoint(path)
    assert "\n" not in fault.value.message
    return fault.value


# Numbers


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "int8"])
def test_plain_numbers_are_mapped(tmp_path, dtype):
    x = np.arange(12).reshape(3, 4).astype(dtype)
    stored = open_checkpoint(file_of(tmp_path, tensors={"output.weight": x}))
    table = stored.arrays["lm_head.weight"]
    np.testing.assert_array_equal(table, x, strict=True)
    assert not table.flags.owndata


def test_bf16_keeps_its_bits(tmp_path):
    x = np.linspace(-2, 2, 32, dtype="f4").reshape(2, 16)
    tensors = {"output.weight": bf16_bits(x).view(np.uint8)}
    path = file_of(tmp_path, tensors=tensors, kinds={"output.weight": "BF16"})
    table = open_checkpoint(path).arrays["lm_head.weight"]
    assert (table.dtype, table.shape) == (BF16, (2, 16))
    expected = (bf16_bits(x).astype("u4") << 16).view("f4")
    np.testing.assert_array_equal(widen(table, F32), expected, strict=True)


def packed_bytes(kind, rows=37, width=512):
    if kind not in gguf.GGMLQuantizationType.__members__:
        pytest.skip("this gguf package does not know it")
    rng = np.random.default_rng(0)
    numbers, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    if kind in WRITTEN:
        x = rng.standard_normal((rows, width)).astype("f4")
        try:
            return quants.quantize(x, gguf.GGMLQuantizationType[kind])
        except NotImplementedError:
            pytest.skip("this gguf package does not write it")
    data = rng.integers(0, 256, (rows, width // numbers * size), dtype=np.uint8)
    return np.where(data > 0x70, data & 0x3F, data)  # few scales are NaN


@pytest.mark.parametrize("kind", WRITTEN + READ)
def test_packed_rows_are_those_of_the_whole(tmp_path, kind):
    data = packed_bytes(kind)
    path = file_of(tmp_path, tensors={"output.weight": data}, kinds={"output.weight": kind})
    with np.errstate(all="ignore"):
        whole = quants.dequantize(data, gguf.GGMLQuantizationType[kind])
    table = open_checkpoint(path).arrays["lm_head.weight"]
    assert (table.shape, table.dtype) == ((37, 512), F32)
    np.testing.assert_array_equal(np.asarray(table), whole, strict=True)
    np.testing.assert_array_equal(np.asarray(table, np.float64), whole.astype("f8"), strict=True)
    for index in (3, -1, slice(2, 5), slice(None, None, 7), np.array([4, 0, 4]), [36, 1]):
        np.testing.assert_array_equal(table[index], whole[index], strict=True)


def test_only_the_rows_that_are_asked_for_are_expanded(tmp_path, monkeypatch):
    data = packed_bytes("Q8_0")
    path = file_of(tmp_path, tensors={"output.weight": data}, kinds={"output.weight": "Q8_0"})
    table = open_checkpoint(path).arrays["lm_head.weight"]
    seen, usual = [], quants.dequantize
    monkeypatch.setattr(quants, "dequantize", lambda x, k: seen.append(x.size) or usual(x, k))
    assert table[np.array([5, 9])].shape == (2, 512)
    assert sum(seen) == 2 * data.shape[1]


def test_a_copy_that_must_not_be_made(tmp_path):
    tensors = {"output.weight": packed_bytes("Q8_0")}
    path = file_of(tmp_path, tensors=tensors, kinds={"output.weight": "Q8_0"})
    with pytest.raises(ValueError, match="copy"):
        np.asarray(open_checkpoint(path).arrays["lm_head.weight"], copy=False)


def test_without_the_package_plain_files_open_and_packed_ones_say_how(tmp_path):
    plain = file_of(tmp_path)
    plain.rename(tmp_path / "plain.gguf")
    packed = {"output.weight": packed_bytes("Q8_0")}
    path = file_of(tmp_path, tensors=packed, kinds={"output.weight": "Q8_0"})
    code = (
        "import sys; sys.modules['gguf'] = None\n"
        "from pathlib import Path\n"
        "from gptscope.errors import ModelError\n"
        "from gptscope.model.checkpoint import open_checkpoint\n"
        f"assert open_checkpoint(Path({str(tmp_path / 'plain.gguf')!r})).arrays\n"
        f"try: open_checkpoint(Path({str(path)!r}))\n"
        "except ModelError as fault: print(fault.message, fault.hint, sep='\\n')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said, hint = done.stdout.splitlines()
    assert said.endswith(
        "holds packed numbers, which the gguf package expands, and it is not there"
    )
    assert hint == "pip install 'gptscope[gguf]'"


# Names and settings


def package_names(arch, layers=2):
    """Hugging Face's names, as the package maps them: several for each of llama.cpp's."""
    if arch.upper() not in gguf.MODEL_ARCH.__members__:
        pytest.skip("this gguf package does not know it")
    found = gguf.get_tensor_name_map(gguf.MODEL_ARCH[arch.upper()], layers).mapping
    names = {}
    for theirs, (_, ours) in found.items():
        names.setdefault(ours, set()).add(theirs)
    return names


@pytest.mark.parametrize("arch", DIALECTS)
def test_every_name_is_one_that_the_package_knows(arch):
    # Settings, not tensors; and what only other models of the architecture have.
    passed = ("rope_", "attn_rot_embd", "gate_inp", "_exp", "shexp")
    for stored, theirs in package_names(arch).items():
        if any(word in stored for word in passed):
            continue
        name = DIALECTS[arch].name(f"{stored}.weight").removesuffix(".weight")
        if name == stored:  # Phi-2 may have queries in one matrix, as its first export had
            assert stored in {"blk.0.attn_qkv", "blk.1.attn_qkv"}, stored
        assert {name, name.removeprefix("transformer.")} & (theirs | {stored}), stored


def test_names_that_nobody_knows_stay():
    name = DIALECTS["llama"].name
    assert name("blk.3.attn_q.bias") == "model.layers.3.self_attn.q_proj.bias"
    for odd in ("blk.3.odd.weight", "attn_q.weight", "blk.1.output.weight", "x", "", "blk..a"):
        assert name(odd) == odd


LLAMA = {
    "context_length": 64,
    "block_count": 1,
    "embedding_length": 32,
    "feed_forward_length": 96,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "rope.freq_base": 500000.0,
    "rope.dimension_count": 8,
    "vocab_size": 3,
}
SIZES = {
    "max_position_embeddings": 64,
    "num_hidden_layers": 1,
    "hidden_size": 32,
    "intermediate_size": 96,
    "num_attention_heads": 4,
}


def config_of(*args, **more):
    return open_checkpoint(file_of(*args, **more)).config


def test_a_llama(tmp_path):
    assert config_of(tmp_path, said=LLAMA, tokens={"bos_token_id": 1, "eos_token_id": 2}) == {
        **SIZES,
        "model_type": "llama",
        "hidden_act": "silu",
        "rope_interleaved": True,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "vocab_size": 3,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": [2],
    }


def test_several_ends_and_a_table_of_its_own(tmp_path):
    tokens = {"eos_token_id": 2, "eot_token_id": 7, "eom_token_id": 2}
    tensors = {"output.weight": np.ones((3, 32), "f4")}
    config = config_of(tmp_path, said=LLAMA, tokens=tokens, tensors=tensors)
    assert config["eos_token_id"] == [2, 7]
    assert config["tie_word_embeddings"] is False


@pytest.mark.parametrize(
    ("arch", "said", "expected"),
    [
        ("qwen2", {}, {"model_type": "qwen2", "rope_interleaved": None}),
        ("qwen3", {"attention.key_length": 16}, {"head_dim": 16}),
        ("gemma", {}, {"norm_gain_offset": False, "hidden_activation": "gelu_pytorch_tanh"}),
        (
            "gemma2",
            {"block_count": 3, "attention.sliding_window": 9, "attn_logit_softcapping": 50.0},
            {
                "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                "sliding_window": 9,
                "attn_logit_softcapping": 50.0,
                "query_pre_attn_scalar": 8,
            },
        ),
        ("gemma2", {"block_count": 46, "attention.key_length": 9}, {"query_pre_attn_scalar": 8}),
        (
            "gemma3",
            {"attention.key_length": 16, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0},
            {
                "model_type": "gemma3_text",
                "query_pre_attn_scalar": 16,
                "rope_local_base_freq": 10000.0,
                "rope_scaling": {"rope_type": "linear", "factor": 8.0},
            },
        ),
        ("phi2", {}, {"model_type": "phi", "partial_rotary_factor": 1.0}),
        ("phi3", {"rope.dimension_count": 6}, {"partial_rotary_factor": 0.75}),
        ("stablelm", {"rope.dimension_count": 2}, {"partial_rotary_factor": 0.25}),
        ("granite", {"logit_scale": 8.0}, {"logits_scaling": 8.0, "rope_interleaved": True}),
        ("smollm3", {"block_count": 5}, {"no_rope_layers": [1, 1, 1, 0, 1]}),
        (
            "gptneox",
            {"use_parallel_residual": True, "rope.dimension_count": 2},
            {"rotary_pct": 0.25, "rotary_emb_base": 500000.0, "use_parallel_residual": True},
        ),
        ("gpt2", {}, {"n_embd": 32, "n_head": 4, "n_layer": 1, "n_positions": 64, "n_inner": 96}),
        ("bloom", {}, {"hidden_size": 32, "n_head": 4, "n_layer": 1, "n_inner": None}),
        ("starcoder2", {}, {"use_bias": True, "hidden_act": "gelu_pytorch_tanh"}),
        ("llama", {"attention.head_count_kv": [2, 2]}, {"num_key_value_heads": 2}),
        ("llama", {"expert_count": 0}, {}),
        (
            "qwen2",
            {"rope.scaling.type": "yarn", "rope.scaling.original_context_length": 16},
            {"rope_scaling": {"rope_type": "yarn", "original_max_position_embeddings": 16}},
        ),
    ],
)
def test_settings_of_other_architectures(tmp_path, arch, said, expected):
    config = config_of(tmp_path, arch, said=LLAMA | said)
    assert {key: config.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    ("arch", "said", "why"),
    [
        ("falcon", {}, "the architecture of .* is falcon, and those understood are: llama, "),
        ("llama", {"odd": 3}, "odd is not understood, and may matter"),
        ("llama", {"rope.scaling.odd": 3}, "rope.scaling.odd is not understood"),
        ("llama", {"expert_count": 8}, "is a mixture of experts"),
        ("llama", {"attention.head_count": [1, 2]}, "head_count differs from layer to layer"),
        ("llama", {"attention.causal": False}, "attention.causal is false"),
        (
            "llama",
            {"attention.key_length": 8, "attention.value_length": 9},
            "keys and values of different widths",
        ),
    ],
)
def test_settings_that_are_refused(tmp_path, arch, said, why):
    refused(file_of(tmp_path, arch, said=LLAMA | said), why)


def test_factors_of_the_turning(tmp_path):
    factors = np.array([1, 2, 8, 8], "f4")
    checkpoint = open_checkpoint(file_of(tmp_path, tensors={"rope_freqs.weight": factors}))
    assert checkpoint.config["rope_factors"] == [1.0, 2.0, 8.0, 8.0]
    assert not checkpoint.arrays


def test_factors_of_phi3(tmp_path):
    lists = {
        f"rope_factors_{k}.weight": np.full(4, i, "f4") for k, i in (("long", 3), ("short", 2))
    }
    said = {"rope.scaling.original_context_length": 16}
    scaling = config_of(tmp_path, "phi3", tensors=lists, said=LLAMA | said)["rope_scaling"]
    assert scaling["rope_type"] == "longrope"
    assert (scaling["long_factor"], scaling["short_factor"]) == ([3.0] * 4, [2.0] * 4)
    assert scaling["original_max_position_embeddings"] == 16


@pytest.mark.parametrize("arch", ["gptneox", "bloom"])
@pytest.mark.parametrize("kind", ["weight", "bias"])
def test_queries_keys_and_values_go_back_to_their_heads(tmp_path, arch, kind):
    heads, width = 4, 8
    theirs = np.random.default_rng(0).standard_normal((heads, 3, width, 32)).astype("f4")
    theirs = theirs if kind == "weight" else theirs[..., 0]
    name = f"blk.0.attn_qkv.{kind}"
    stored = np.ascontiguousarray(theirs.swapaxes(0, 1)).reshape(96, *theirs.shape[3:])
    checkpoint = open_checkpoint(file_of(tmp_path, arch, {name: stored}, LLAMA))
    table = checkpoint.arrays[DIALECTS[arch].name(name)]
    expected = theirs.reshape(stored.shape)
    assert (table.shape, table.dtype) == (expected.shape, F32)
    np.testing.assert_array_equal(np.asarray(table), expected, strict=True)
    np.testing.assert_array_equal(table[5:9], expected[5:9], strict=True)


# The tokenizer


SCORES = [0.0] * 259 + [-1.0, -9.0, -9.0, -3.0, -2.0, -4.0, 0.0]
TYPES = [2, 3, 3] + [6] * 256 + [1] * 6 + [4]
PIECES = {"model": "llama", "tokens": TEXTS, "scores": SCORES, "token_type": TYPES}
PIECES |= {"bos_token_id": 1, "eos_token_id": 2}


def tokenizer_of(folder, tokens, arch="llama"):
    return open_checkpoint(file_of(folder, arch, said=LLAMA, tokens=tokens)).make_tokenizer()


def test_pieces_are_merged_by_their_scores(tmp_path):
    made = tokenizer_of(tmp_path, PIECES).encode("ab a\u00e9<think>")
    expected = ["<s>", "\u2581ab", "\u2581a", "<0xC3>", "<0xA9>", "<think>"]
    assert made.tokens == expected
    assert tokenizer_of(tmp_path, PIECES).decode(made.ids) == "ab a\u00e9<think>"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"add_bos_token": False}, ["\u2581a"]),
        ({"add_eos_token": True}, ["<s>", "\u2581a", "</s>"]),
        ({"add_space_prefix": False}, ["<s>", "a"]),
    ],
)
def test_what_is_put_around_a_text(tmp_path, said, expected):
    assert tokenizer_of(tmp_path, PIECES | said).encode("a").tokens == expected


BYTE_LEVEL = {
    "model": "gpt2",
    "pre": "gpt-2",
    "tokens": [
        *(chr(c) for c in range(33, 127)),
        "\u0120",
        "\u0120a",
        "ab",
        "12",
        "\u010a",
        "<end>",
    ],
    "merges": ["\u0120 a", "a b", "1 2"],
    "token_type": [1] * 99 + [3],
    "bos_token_id": 99,
}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, ["ab", "\u0120a", "\u0120", "12"]),
        ({"pre": "default"}, ["ab", "\u0120a", "\u0120", "12"]),
        ({"pre": "smollm"}, ["ab", "\u0120a", "\u0120", "1", "2"]),
        ({"pre": "qwen2"}, ["ab", "\u0120a", "\u0120", "1", "2"]),
        ({"pre": "llama-bpe"}, ["<end>", "ab", "\u0120a", "\u0120", "12"]),
        ({"pre": "llama-bpe", "add_bos_token": False}, ["ab", "\u0120a", "\u0120", "12"]),
        ({"add_bos_token": True}, ["<end>", "ab", "\u0120a", "\u0120", "12"]),
    ],
)
def test_the_rule_that_cuts_a_text(tmp_path, said, expected):
    tokenizer = tokenizer_of(tmp_path, BYTE_LEVEL | said)
    assert tokenizer.encode("ab a 12").tokens == expected
    assert tokenizer.encode("ab<end>").tokens[-1] == "<end>"


def test_every_rule_cuts(tmp_path):
    for name in RULES:
        tokenizer = tokenizer_of(tmp_path, BYTE_LEVEL | {"pre": name, "add_bos_token": False})
        text = "ab a 12, it's\nHE"
        assert tokenizer.decode(tokenizer.encode(text).ids) == text, name


@pytest.mark.parametrize("pre", ["llama-bpe", "qwen2", "tekken", "gpt-4o"])
def test_the_rules_are_those_of_transformers(pre):
    theirs = pytest.importorskip("transformers.integrations.gguf.gguf_tokenizer_mapping")
    tokenizers = pytest.importorskip("tokenizers")
    rng = random.Random(0)  # noqa: S311
    cut = tokenizers.pre_tokenizers.Split
    both = [
        cut(tokenizers.Regex(regex), "isolated")
        for regex in (RULES[pre].split, theirs.GGUF_PRE_TOKENIZER_SPLITS[pre])
    ]
    parts = [*"aBc dE\n\r\t12345 .,'/\u00e9\u4e16\u0301", "'s", "'LL", "  ", "\r\n"]
    for _ in range(500):
        text = "".join(rng.choices(parts, k=rng.randrange(1, 30)))
        ours, expected = (one.pre_tokenize_str(text) for one in both)
        assert ours == expected


@pytest.mark.parametrize(
    ("tokens", "why"),
    [
        (BYTE_LEVEL | {"pre": "odd"}, "cuts a text by the rule odd, which is not known"),
        (BYTE_LEVEL | {"model": "bert"}, "is of the kind bert, and gpt2, llama are read"),
        (BYTE_LEVEL | {"token_type": [1]}, "has 100 tokens and 1 types of them"),
        (BYTE_LEVEL | {"merges": ["x y"]}, "cannot be read"),
        (PIECES | {"scores": [1.0]}, "has 266 tokens and 1 scores of them"),
    ],
)
def test_a_tokenizer_that_is_not_understood(tmp_path, tokens, why):
    checkpoint = open_checkpoint(file_of(tmp_path, said=LLAMA, tokens=tokens))
    with pytest.raises(ModelError, match=why) as fault:
        checkpoint.make_tokenizer()
    assert "--ids" in fault.value.hint


def test_a_file_without_a_tokenizer(tmp_path):
    assert open_checkpoint(file_of(tmp_path)).make_tokenizer is None


# Broken files


def test_one_of_several_files(tmp_path):
    path = file_of(tmp_path)
    data = path.read_bytes()
    count = struct.pack("<Q", len("split.count")) + b"split.count" + struct.pack("<IH", 2, 3)
    path.write_bytes(data[:16] + struct.pack("<Q", data[16] + 1) + count + data[24:])
    assert "--merge" in refused(path, "is one of 3 files, which are not opened together").hint


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it does not begin with the letters GGUF"),
        (b"GGUF", "its header is cut short"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a Git-LFS pointer"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "its version is 1, and those read are 2 and 3"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), r"perhaps big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "its header is cut short"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "its header is cut short"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 62), "its header is cut short"),
        (
            b"GGUF" + struct.pack("<IQQQcI", 3, 0, 1, 1, b"k", 99),
            "values of type 99, which is not known",
        ),
        (
            b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"k", 9, 8, 1 << 60),
            "its header is cut short",
        ),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + struct.pack("<QcIB", 1, b"k", 0, 1) * 2,
            "k twice",
        ),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "the architecture of .* is not said"),
    ],
    ids=range(12),
)
def test_a_broken_header(tmp_path, content, why):
    path = tmp_path / "a.gguf"
    path.write_bytes(content)
    refused(path, why)


def test_a_file_that_is_cut_short_anywhere(tmp_path):
    path = file_of(tmp_path, said=LLAMA, tokens=PIECES)
    data = path.read_bytes()
    for cut in (*range(0, len(data), 197), len(data) - 1):
        path.write_bytes(data[:cut])
        refused(path, "cut short|does not begin with|behind the end")


def test_changed_bytes_never_escape(tmp_path):
    kinds = {"output.weight": "Q8_0"}
    tensors = {
        "token_embd.weight": np.ones((3, 32), "f4"),
        "output.weight": packed_bytes("Q8_0", 2),
    }
    path = file_of(tmp_path, "gptneox", tensors, LLAMA, BYTE_LEVEL, kinds)
    data, rng = path.read_bytes(), random.Random(0)  # noqa: S311
    opened = 0
    for _ in range(600):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 4))):
            changed[rng.randrange(2200)] = rng.choice((0, 1, 255, rng.randrange(256)))
        path.write_bytes(bytes(changed))
        try:
            checkpoint = open_checkpoint(path)
            opened += 1
            checkpoint.make_tokenizer and checkpoint.make_tokenizer()
        except ModelError as fault:
            assert len(fault.message) < 600  # noqa: PT017
    assert opened > 40
