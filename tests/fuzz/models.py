"""Model folders with something changed in them: bytes, numbers, keys; each from its seed alone."""

import copy
import json
import random
from dataclasses import dataclass, replace

import numpy as np
import tokenizers

from tests.helpers.folders import config_of, safetensors_bytes, tensors_of

WORDS = ["the", "cat", "eats", "fish", "and", "dog", "sees", "a", "bird"]
EXTREME = [
    *(0, -1, 1, 2, 3, 7, 8, 16, 61, 255, 1 << 20, 1 << 31, (1 << 31) - 1, 1 << 32),
    *(1 << 53, 1 << 62, (1 << 63) - 1, 1 << 63, 1 << 64, 10**30, -(1 << 63), 10**12),
    *(0.0, -0.5, 1.5, 1e-320, 1e308, float("inf"), float("nan"), 1e-8, 1e9),
    *(True, False, None, "", "1", "F32", "gelu", "x" * 5000, "\ud800", "\x1b[31m", "rms_norm"),
    *([], {}, [0], [1, 2], [0, 0], [[]], {"a": 1}, [1 << 62, 4, 0], [0, 1 << 62], [[1]] * 50),
]
KEYS = [
    *("n_layer", "n_embd", "n_head", "n_inner", "n_positions", "vocab_size", "bias", "causal"),
    *("positions", "norm", "norm_type", "rope_theta", "activation_function", "model_type"),
    *("layer_norm_epsilon", "bos_token_id", "eos_token_id", "tie_word_embeddings", "block_size"),
    *("scale_attn_weights", "scale_attn_by_inverse_layer_idx", "auto_map", "dHead", "quantization"),
    *("add_cross_attention", "__metadata__", "dtype", "shape", "data_offsets"),
]
CHOICES = ["sinusoidal", "learned", "rotary", "none", "pre", "post", "layer_norm", "toy", "gpt2"]
DTYPES = ["F64", "F32", "F16", "BF16", "F8_E4M3", "F4", "I64", "U8", "BOOL", "", "f32", None, 3]
NUMBERS = [b"9", b"0", b"-1", b"1.0", b"9" * 30, b"9" * 5000, b"1e3"]
DEEP = b"[" * 3000
TOKENS = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\u", b"null", b"1e999", b"NaN", b"-", DEEP]


@dataclass(frozen=True)
class Parts:
    """The files of one folder; None where there is no such file."""

    weights: bytes
    config: bytes | None
    tokenizer: bytes | None


def pristine(case):
    """A golden model as it is, with a tokenizer of whole words."""
    vocab = {word: i for i, word in enumerate(WORDS)}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocab, unk_token="a"))  # noqa: S106
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    config = json.dumps(config_of(case)).encode()
    return Parts(safetensors_bytes(tensors_of(case)), config, words.to_str().encode())


def mutated(parts, rng):
    """The folder with one to three changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        parts = rng.choices(list(CHANGES), list(CHANGES.values()))[0](parts, rng)
    return parts


# What is changed: the header, the config and the tokenizer as JSON, or any file as bytes


def header_changed(parts, rng):
    head, body = split(parts.weights)
    try:
        header = json.loads(head)
    except (ValueError, RecursionError):
        return bytes_changed(parts, rng)
    if not isinstance(header, dict) or not header:
        return bytes_changed(parts, rng)
    changed = rng.choice((entry_changed, json_changed))(header, rng)
    return replace(parts, weights=joined(dumped(changed), body))


def entry_changed(header, rng):
    """One number of one entry: a size or an offset a little off, or far off; another type."""
    header = copy.deepcopy(header)
    name = rng.choice(list(header))
    entry = header[name]
    if not isinstance(entry, dict):
        return header
    what = rng.choice(("dtype", "shape", "data_offsets", "rename", "swap"))
    if what == "dtype":
        entry["dtype"] = rng.choice(DTYPES)
    elif what == "rename":
        header[rng.choice((name + "x", "", "transformer." + name, "\u202e", "x" * 3000))] = (
            header.pop(name)
        )
    elif what == "swap":
        other = rng.choice(list(header))
        header[name], header[other] = header[other], header[name]
    elif isinstance(entry.get(what), list) and entry[what]:
        at = rng.randrange(len(entry[what]))
        old = entry[what][at]
        near = old + rng.choice((-8, -4, -1, 1, 4, 8)) if type(old) is int else 0
        entry[what][at] = rng.choice((near, near, rng.choice(EXTREME)))
    return header


def length_changed(parts, rng):
    n = rng.choice((0, 1, 8, 1 << 20, 1 << 31, 1 << 62, 1 << 63, (1 << 64) - 1))
    if rng.random() < 0.5:
        near = int.from_bytes(parts.weights[:8], "little") + rng.randint(-9, 9)
        n = min(max(0, near), (1 << 64) - 1)
    return replace(parts, weights=n.to_bytes(8, "little") + parts.weights[8:])


def numbers_changed(parts, rng):
    """NaN, infinities and large numbers among the weights."""
    head, body = split(parts.weights)
    data = np.frombuffer(body[: len(body) // 4 * 4], "<f4").copy()
    if data.size:
        at = rng.choices(range(data.size), k=rng.choice((1, 10)))
        data[at] = rng.choice((np.nan, np.inf, -np.inf, 3e38, 1e-45, 0))
    return replace(parts, weights=joined(head, data.tobytes() + body[len(body) // 4 * 4 :]))


def config_changed(parts, rng):
    return replace(parts, config=as_json_changed(parts.config, rng))


def tokenizer_changed(parts, rng):
    return replace(parts, tokenizer=as_json_changed(parts.tokenizer, rng))


def as_json_changed(data, rng):
    if data is None:
        return rng.choice((b"{}", b""))
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        return bytes_of(data, rng)
    return dumped(json_changed(values, rng))


def json_changed(values, rng):
    """One place of a JSON value: another value, another key, gone, or twice."""
    values = copy.deepcopy(values)
    inner = rng.choice(list(containers(values)) or [None])
    if inner is None:
        return rng.choice(EXTREME)
    keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
    at = rng.choice(keys) if keys else None
    kind = rng.choice(("value", "value", "gone", "key", "word"))
    if isinstance(inner, list):
        if at is None or kind == "key":
            inner.append(rng.choice(EXTREME))
        elif kind == "gone":
            del inner[at]
        else:
            inner[at] = rng.choice(EXTREME)
    elif at is None or kind == "key":
        inner[rng.choice((*KEYS, "", "\ud800"))] = rng.choice((*EXTREME, *CHOICES))
    elif kind == "gone":
        del inner[at]
    else:
        inner[at] = rng.choice(CHOICES if kind == "word" else EXTREME)
    return values


def containers(value):
    if isinstance(value, dict | list):
        yield value
        for one in value.values() if isinstance(value, dict) else value:
            yield from containers(one)


def bytes_changed(parts, rng):
    which = rng.choice(("weights", "config", "tokenizer"))
    data = getattr(parts, which)
    if data is None:
        return parts
    if which == "weights" and rng.random() < 0.8:  # most of it is numbers, which may be anything
        n = min(len(data), 8 + int.from_bytes(data[:8], "little"))
        return replace(parts, weights=bytes_of(data[:n], rng) + data[n:])
    return replace(parts, **{which: bytes_of(data, rng)})


def bytes_of(data, rng):
    """Bytes flipped, cut, doubled, cut out or put in."""
    data, n = bytearray(data), len(data)
    a, b = sorted((rng.randint(0, n), rng.randint(0, n)))
    kind = rng.choice(("flip", "flip", "cut", "splice", "gone", "put", "token", "digit"))
    if kind == "flip" and n:
        for _ in range(rng.choice((1, 1, 3, 20))):
            data[rng.randrange(n)] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del data[rng.choice((a, n - 1, n // 2, 0)) :]
    elif kind == "splice":
        data[a:a] = data[a:b]
    elif kind == "gone":
        del data[a : min(b, a + 40)]
    elif kind == "put":
        data[a:a] = rng.randbytes(rng.choice((1, 4, 100)))
    elif kind == "token":
        data[a:a] = rng.choice(TOKENS)
    elif kind == "digit":
        digits = [i for i, c in enumerate(data[:4000]) if 48 <= c < 58]
        for i in rng.sample(digits, min(len(digits), rng.choice((1, 3)))):
            data[i : i + 1] = rng.choice(NUMBERS)
    return bytes(data)


def file_gone(parts, rng):
    return replace(parts, **{rng.choice(("config", "tokenizer")): None})


CHANGES = {
    header_changed: 6,
    length_changed: 1,
    numbers_changed: 1,
    config_changed: 5,
    tokenizer_changed: 2,
    bytes_changed: 5,
    file_gone: 0.2,
}


def split(weights):
    n = min(len(weights) - 8, int.from_bytes(weights[:8], "little"))
    return weights[8 : 8 + max(0, n)], weights[8 + max(0, n) :]


def joined(head, body):
    return len(head).to_bytes(8, "little") + head + body


def dumped(values):
    return json.dumps(values).encode()


def cases(seed, count, originals):
    """This many changed folders, in a row."""
    rng = random.Random(seed)  # noqa: S311
    for _ in range(count):
        yield mutated(rng.choice(originals), rng)
