# What gptscope reads in a folder's tokenizer files, against transformers.

import pytest

from gptscope.model.tokenizer_files import load_tokenizer
from tests.helpers.made_tokenizers import GPT2, KINDS, byte_level, gpt1, write_json, write_pair

transformers = pytest.importorskip("transformers")

END = "<|endoftext|>"
TEXTS = [
    "Lily wanted to play with her red ball in the park. The cat eats the fish!",
    "",
    " ",
    "  two  spaces \n\n\tand\r\nlines ",
    "na\u00efve caf\u00e9 \u00c9COLE \u6f22\u5b57 \u2603 \U0001f469\u200d\U0001f467",
    "don't, we'll; it's 1234 + 5.6 (x_y) <b>",
    f"a{END}b {END}",
    "<unk> </s><s>hey",
    "\x00\x7f\u00a0\u00ad\u202e\ufeff\ufb01",
]
in_transformers = pytest.mark.parametrize("text", TEXTS, ids=ascii)


def opened(folder, kind=None):
    return (kind or transformers.PreTrainedTokenizerFast).from_pretrained(folder)


@pytest.fixture(scope="module")
def gpt2_twice():
    if not GPT2.is_dir():
        pytest.skip("needs GPT-2's vocabulary")
    return load_tokenizer(GPT2), opened(GPT2, transformers.GPT2Tokenizer)


@in_transformers
def test_gpt2_from_its_own_files(gpt2_twice, text):
    ours, theirs = gpt2_twice
    assert ours.encode(text) == theirs(text)["input_ids"]
    assert ours.decode(ours.encode(text)) == text
    assert (ours.bos_id, ours.eos_id) == (theirs.bos_token_id, theirs.eos_token_id)


def test_every_token_of_gpt2_has_the_bytes_that_transformers_gives_back(gpt2_twice):
    ours, theirs = gpt2_twice
    for i in range(0, ours.size, 97):
        assert ours.bytes_of(i).decode(errors="replace") == theirs.decode([i])


@pytest.fixture(scope="module")
def gpt1_twice(tmp_path_factory):
    folder = write_pair(tmp_path_factory.mktemp("gpt1"), gpt1())
    return load_tokenizer(folder), opened(folder, transformers.OpenAIGPTTokenizer)


@in_transformers
def test_gpt1_from_its_own_files(gpt1_twice, text):
    ours, theirs = gpt1_twice
    ids = ours.encode(text)
    assert ids == theirs(text)["input_ids"]
    assert ours.decode(ids) == theirs.decode(ids, clean_up_tokenization_spaces=False)


CONFIGS = [
    {"add_bos_token": True},
    {"add_bos_token": True, "add_eos_token": True},
    {"add_prefix_space": True},
    {"bos_token": "<s>", "add_bos_token": True},
    {"pad_token": "[PAD]"},
    {"additional_special_tokens": ["<a>", "caf\u00e9"]},
    {"added_tokens_decoder": {"369": {"content": "park", "special": False, "lstrip": True}}},
]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_what_a_config_adds_beside_the_vocabulary(tmp_path, config):
    inner = byte_level()
    assert inner.get_vocab_size() == 369
    config = {"tokenizer_class": "GPT2Tokenizer"} | config
    folder = write_pair(tmp_path, inner, tokenizer_config=config)
    ours, theirs = load_tokenizer(folder), opened(folder, transformers.GPT2Tokenizer)
    assert (ours.bos_id, ours.eos_id) == (theirs.bos_token_id, theirs.eos_token_id)
    for text in [*TEXTS, "in the park[PAD]<a>caf\u00e9"]:
        assert ours.encode(text) == theirs(text)["input_ids"], text


@pytest.fixture(scope="module")
def each_twice(tmp_path_factory):
    def both(name):
        config = {"bos_token": "<s>", "eos_token": "</s>"} if "llama" in name else {}
        folder = write_json(tmp_path_factory.mktemp(name), KINDS[name](), tokenizer_config=config)
        return load_tokenizer(folder), opened(folder)

    return {name: both(name) for name in KINDS}


@in_transformers
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_from_a_tokenizer_json(each_twice, kind, text):
    ours, theirs = each_twice[kind]
    encoded = ours.encoded(text)
    assert encoded.ids == theirs(text)["input_ids"]
    assert encoded.own == theirs(text, add_special_tokens=False)["input_ids"]
    plain = theirs.decode(encoded.own, clean_up_tokenization_spaces=False)
    assert ours.decode(encoded.own) == plain


@pytest.mark.parametrize("kind", ["llama", "llama_metaspace"])
def test_the_special_tokens_of_every_kind(each_twice, kind):
    ours, theirs = each_twice[kind]
    assert (ours.bos_id, ours.eos_id) == (theirs.bos_token_id, theirs.eos_token_id)
    assert ours.encode("the", bos=True) == theirs("the")["input_ids"]
    assert ours.encode("the", bos=False) == theirs("the", add_special_tokens=False)["input_ids"]
