import json
import os

import pytest

from gptscope.errors import ModelError
from gptscope.model.tokenizer_files import load_tokenizer
from tests.helpers.made_tokenizers import GPT2, byte_level, gpt1, llama, write_json, write_pair

END = "<|endoftext|>"
needs_gpt2 = pytest.mark.skipif(not GPT2.is_dir(), reason="needs GPT-2's vocabulary")


@pytest.fixture(scope="module")
def gpt2():
    return load_tokenizer(GPT2)


# Which files


def test_a_folder_without_a_tokenizer(tmp_path):
    assert load_tokenizer(tmp_path) is None
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / name).write_text("{}", "utf-8")
        assert load_tokenizer(tmp_path) is None
        (tmp_path / name).unlink()


def test_tokenizer_json_comes_first(tmp_path):
    write_pair(tmp_path, byte_level())
    assert load_tokenizer(tmp_path).file == "vocab.json"
    write_json(tmp_path, llama())
    tokenizer = load_tokenizer(tmp_path)
    assert (tokenizer.file, tokenizer.encode("the")[0]) == ("tokenizer.json", 1)


@needs_gpt2
def test_the_real_files_of_gpt2(gpt2):
    assert gpt2.encode("Hello world") == [15496, 995]
    assert gpt2.encode(" Hello world") == [18435, 995]
    assert gpt2.encode(f"a{END}b") == [64, 50256, 65]
    assert (gpt2.size, gpt2.bos_id, gpt2.eos_id) == (50257, 50256, 50256)
    assert (gpt2.adds_bos, gpt2.has_chat_template) == (False, False)
    pieces = [gpt2.text_of(i) for i in gpt2.encode(" \u2603\n")]
    assert pieces == [" <0xE2><0x98>", "<0x83>", "\n"]


@pytest.mark.parametrize("version", ["", "#version: 0.2\n"])
def test_merges_with_and_without_a_version(tmp_path, version):
    inner = byte_level()
    folder = write_pair(tmp_path, inner)
    lines = (folder / "merges.txt").read_text("utf-8").split("\n")
    plain = [line for line in lines if not line.startswith("#version")]
    (folder / "merges.txt").write_text(version + "\n".join(plain), "utf-8")
    text = "Lily wanted to play with her red ball in the park."
    assert load_tokenizer(folder).encode(text) == inner.encode(text).ids


def test_words_that_end_in_a_mark_are_those_of_gpt1(tmp_path):
    inner = gpt1()
    tokenizer = load_tokenizer(write_pair(tmp_path, inner))
    text = "Lily, don't play \u2603 in the PARK!"
    ids = tokenizer.encode(text)
    assert ids == inner.encode(text).ids
    assert tokenizer.decode(ids) == "lily , don ' t play <unk>in the park !"
    assert tokenizer.bos_id is None
    assert tokenizer.tokens(tokenizer.encode("\u2603"))[0].special


# What the other files say


def parts_of(whole, **special):
    """A tokenizer in the form of transformer-visualized."""
    said = json.loads(whole.to_str())["model"]
    merges = [pair if isinstance(pair, list) else pair.split(" ") for pair in said["merges"]]
    parts = {"vocab": said["vocab"], "merges": merges, "specialTokens": special}
    return {"type": "gpt2-byte-bpe", **parts}


def test_the_form_of_transformer_visualized(tmp_path):
    whole = byte_level()
    n = whole.get_vocab_size(with_added_tokens=False)
    end = {"<|end|>": n}
    (tmp_path / "tokenizer.json").write_text(json.dumps(parts_of(whole, **end)), "utf-8")
    tokenizer = load_tokenizer(tmp_path)
    for text in ("Lily wanted to play", "caf\u00e9\n  \U0001f600", "a<|end|>b"):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
    assert tokenizer.encode("Lily wanted") == whole.encode("Lily wanted").ids
    assert tokenizer.encode("<|end|>") == [n]


@pytest.mark.parametrize(
    "change", [{"specialTokens": {"<|end|>": 3}}, {"vocab": 3}, {"merges": [["a"]]}, {"merges": 7}]
)
def test_a_broken_form_of_transformer_visualized(tmp_path, change):
    broken = parts_of(byte_level()) | change
    (tmp_path / "tokenizer.json").write_text(json.dumps(broken), "utf-8")
    with pytest.raises(ModelError, match="is not a tokenizer that can be read"):
        load_tokenizer(tmp_path)


def bos_and_eos(folder, **more):
    tokenizer = load_tokenizer(folder, **more)
    return tokenizer.bos_id, tokenizer.eos_id


@pytest.mark.parametrize("written", ["<s>", {"content": "<s>", "lstrip": False}])
def test_special_tokens_are_strings_or_objects(tmp_path, written):
    folder = write_json(tmp_path, llama(), tokenizer_config={"bos_token": written})
    assert bos_and_eos(folder) == (1, None)
    assert bos_and_eos(folder, bos_id=7) == (7, None)


def test_the_config_counts_more_than_the_map(tmp_path):
    folder = write_json(
        tmp_path,
        llama(),
        special_tokens_map={"bos_token": "</s>", "eos_token": "</s>"},
        tokenizer_config={"bos_token": "<s>"},
    )
    assert bos_and_eos(folder) == (1, 2)


@pytest.mark.parametrize("written", [None, "nowhere"])
def test_a_token_that_is_not_there(tmp_path, written):
    assert bos_and_eos(write_json(tmp_path, llama(), tokenizer_config={"bos_token": written})) == (
        None,
        None,
    )


def test_what_stands_around_a_text_is_what_tokenizer_json_says(tmp_path):
    config = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "add_bos_token": False,
        "add_eos_token": True,
    }
    tokenizer = load_tokenizer(write_json(tmp_path, llama(), tokenizer_config=config))
    assert (tokenizer.adds_bos, tokenizer.adds_eos) == (True, False)


@pytest.mark.parametrize(("bos", "eos"), [(True, False), (False, True), (True, True)])
def test_beside_vocab_json_the_config_says_what_stands_around_a_text(tmp_path, bos, eos):
    config = {"add_bos_token": bos, "add_eos_token": eos}
    tokenizer = load_tokenizer(write_pair(tmp_path, byte_level(), tokenizer_config=config))
    assert (tokenizer.adds_bos, tokenizer.adds_eos) == (bos, eos)
    assert tokenizer.encoded("the")[1:] == (bos, eos)


def test_a_space_before_a_text_where_the_config_says_so(tmp_path):
    config = {"add_prefix_space": True}
    tokenizer = load_tokenizer(write_pair(tmp_path, byte_level(), tokenizer_config=config))
    assert tokenizer.decode(tokenizer.encode("the")) == " the"
    assert tokenizer.places("the") == [(0, 3)]


def test_added_tokens_have_the_ids_that_they_are_given(tmp_path):
    inner = byte_level()
    n = inner.get_vocab_size()
    config = {
        "added_tokens_decoder": {
            str(n + 1): {"content": "<b>", "special": False},
            str(n): {"content": "<a>", "special": True},
        },
        "additional_special_tokens": ["<a>", "<d>"],
        "pad_token": "<c>",
    }
    folder = write_pair(
        tmp_path, inner, tokenizer_config=config, added_tokens={"<c>": n + 2, "<b>": 9}
    )
    tokenizer = load_tokenizer(folder)
    tokens = tokenizer.tokens(tokenizer.encode("<a><b><c><d>"))
    assert [(t.id - n, t.text, t.special) for t in tokens] == [
        (0, "<a>", True),
        (1, "<b>", False),
        (2, "<c>", True),
        (3, "<d>", True),
    ]


def test_whether_there_is_a_chat_template(tmp_path):
    folder = write_json(tmp_path, llama(), tokenizer_config={})
    assert not load_tokenizer(folder).has_chat_template
    (folder / "chat_template.jinja").write_text("{{ x }}", "utf-8")
    assert load_tokenizer(folder).has_chat_template
    (folder / "chat_template.jinja").unlink()
    write_json(folder, llama(), tokenizer_config={"chat_template": "{{ x }}"})
    assert load_tokenizer(folder).has_chat_template


# Broken files


def test_a_folder_in_place_of_a_file(tmp_path):
    for name in ("tokenizer.json", "vocab.json"):
        (tmp_path / name).mkdir()
        (tmp_path / "merges.txt").touch()
        with pytest.raises(ModelError, match="cannot be read: it is a folder, not a file"):
            load_tokenizer(tmp_path)
        (tmp_path / name).rmdir()


def test_what_the_library_says_is_cut(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": "x" * 5000}), "utf-8")
    with pytest.raises(ModelError, match="a tokenizer that can be read") as fault:
        load_tokenizer(tmp_path)
    assert len(fault.value.message) < 500


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b"\xff\xfe", b'{"model": {"type": "Magic"}}']
)
def test_a_malformed_tokenizer_is_refused(tmp_path, content):
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(ModelError, match=r"tokenizer\.json is not a tokenizer that can be read"):
        load_tokenizer(tmp_path)


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.json", "merges.txt"])
def test_a_pointer_is_not_the_file(tmp_path, name):
    write_pair(tmp_path, byte_level())
    (tmp_path / name).write_bytes(POINTER)
    with pytest.raises(ModelError, match=f"{name} is a Git-LFS pointer"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.json", "merges.txt"])
def test_a_file_that_is_too_long(tmp_path, name):
    write_pair(tmp_path, byte_level())
    os.truncate(tmp_path / "vocab.json", 0) if name == "vocab.json" else None
    (tmp_path / name).touch()
    os.truncate(tmp_path / name, 100_000_001)
    with pytest.raises(ModelError, match=f"{name} is longer than 100,000,000 bytes"):
        load_tokenizer(tmp_path)


WRONG_IDS = ["1.5", "-1", '"b"', "null", "99999999999999999999"]
WRONG = [b"", b"[]", b"7", b"\xff", b"[" * 100_000, *(f'{{"a": {i}}}'.encode() for i in WRONG_IDS)]


@pytest.mark.parametrize("content", WRONG, ids=lambda content: ascii(content[:20]))
def test_a_vocabulary_that_is_none(tmp_path, content):
    write_pair(tmp_path, byte_level())
    (tmp_path / "vocab.json").write_bytes(content)
    with pytest.raises(ModelError, match=r"vocab\.json with merges\.txt is not a tokenizer"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    "content", [b"a b c\n", b"a\n", b"\xe2\x98\x83 x\n", b"\n\n", b"\xff \xfe"]
)
def test_merges_that_are_none(tmp_path, content):
    write_pair(tmp_path, byte_level())
    (tmp_path / "merges.txt").write_bytes(content)
    with pytest.raises(ModelError, match="is not a tokenizer that can be read") as fault:
        load_tokenizer(tmp_path)
    assert "--ids" in fault.value.hint


@pytest.mark.parametrize(
    "config",
    [
        {"bos_token": 7},
        {"bos_token": {"text": "<s>"}},
        {"eos_token": ["<s>"]},
        {"added_tokens_decoder": [7]},
        {"added_tokens_decoder": {"x": {"content": "a"}}},
        {"added_tokens_decoder": {"7": "a"}},
        {"added_tokens_decoder": {"7": {}}},
        {"added_tokens_decoder": {"9" * 99: {"content": "a"}}},
        {"added_tokens_decoder": {"99999": {"content": "<a>"}}},
        {"additional_special_tokens": "abc"},
        {"additional_special_tokens": [7]},
    ],
    ids=str,
)
def test_a_config_that_says_what_cannot_be(tmp_path, config):
    folder = write_pair(tmp_path, byte_level(), tokenizer_config=config)
    with pytest.raises(ModelError) as fault:
        load_tokenizer(folder)
    assert str(tmp_path) in fault.value.message
    assert len(fault.value.message) < 400


@pytest.mark.parametrize("name", ["tokenizer_config", "special_tokens_map", "added_tokens"])
@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff"])
def test_a_file_beside_the_vocabulary_that_is_not_json(tmp_path, name, content):
    folder = write_pair(tmp_path, byte_level())
    (folder / f"{name}.json").write_bytes(content)
    with pytest.raises(ModelError, match=f"{name}.json is not"):
        load_tokenizer(folder)


def test_hostile_strings_in_tokens_are_only_text(tmp_path):
    evil = "\x1b[31m\u202e[bold]"
    inner = byte_level()
    config = {"bos_token": evil, "add_bos_token": True}
    tokenizer = load_tokenizer(write_pair(tmp_path, inner, tokenizer_config=config))
    assert tokenizer.text_of(tokenizer.encode("the")[0]) == evil
