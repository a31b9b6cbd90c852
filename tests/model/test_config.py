import json

import pytest

from gptscope.errors import ModelError
from gptscope.model.config import IGNORED, Config, read_config


def config(**values):
    return Config(values, "config.json")


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "config.json"
        path.write_bytes(content)
        return path

    return write


def test_the_file_is_read_as_utf_8(file):
    found = read_config(file('{"n_layer": 2, "name": "caf\u00e9"}'.encode()))
    assert found.source == "config.json"
    assert found.whole("n_layer") == 2
    assert found.word("name", default="") == "caf\u00e9"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is not JSON "),
        (b'{"n_layer": 2,}', "is not JSON "),
        (b'{"n_layer": "\xff"}', "is not UTF-8 text "),
        (b"[" * 100_000, "is nested too deeply"),
        (b"[1, 2]", "is not a JSON object"),
        (b"null", "is not a JSON object"),
        (b'"gpt2"', "is not a JSON object"),
    ],
    ids=lambda value: str(value[:12]),
)
def test_a_malformed_file_is_refused(file, content, why):
    with pytest.raises(ModelError, match=rf"config\.json {why}"):
        read_config(file(content))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"config\.json is not there"):
        read_config(tmp_path / "config.json")


def test_the_first_key_that_is_there_and_not_null_counts():
    found = config(n_embd=None, dModel=8, width=16)
    assert found.whole("n_embd", "dModel", "width") == 8
    assert found.whole("nothing", default=3) == 3
    assert found.has("dModel")
    assert not found.has("n_embd")
    assert not found.has("nothing")
    assert found.says("dModel", 8)
    assert not found.says("nothing", 8)


@pytest.mark.parametrize("value", [0, -1, 2.0, 1.5, "2", True, [2], float("nan"), float("inf")])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(ModelError, match=r"config\.json: n is .*, not a whole number above 0"):
        config(n=value).whole("n")


def test_a_number_may_be_written_without_a_point():
    assert config(eps=1).number("eps", default=2) == 1
    assert config(eps=1e-5).number("eps", default=2) == 1e-5
    assert config(eps=None).number("eps", default=2) == 2
    assert isinstance(config(eps=1).number("eps", default=2), float)


@pytest.mark.parametrize("value", [0, -1e-5, "1e-5", False, [1], float("nan"), float("inf")])
def test_what_is_no_positive_number_is_refused(value):
    with pytest.raises(ModelError, match=r"config\.json: eps is .*, not a positive number"):
        config(eps=value).number("eps", default=1)


@pytest.mark.parametrize("value", [0, 1, "true", [], "yes"])
def test_what_is_no_flag_is_refused(value):
    with pytest.raises(ModelError, match=r"config\.json: tied is .*, not true or false"):
        config(tied=value).flag("tied", default=True)


def test_flags():
    assert config(tied=True).flag("tied", default=False) is True
    assert config(tied=False).flag("tied", default=True) is False
    assert config(tied=None).flag("tied", default=True) is True


@pytest.mark.parametrize("value", [3, True, ["gelu"], {}])
def test_what_is_no_word_is_refused(value):
    with pytest.raises(ModelError, match=r"config\.json: activation is .*, not a word"):
        config(activation=value).word("activation", default="gelu")


@pytest.mark.parametrize(("value", "ids"), [(None, ()), (5, (5,)), ([5, 7], (5, 7)), ([], ())])
def test_token_ids_are_none_one_or_several(value, ids):
    assert config(eos=value).token_ids("eos") == ids


@pytest.mark.parametrize("value", ["5", 5.0, True, [5, None], {"id": 5}])
def test_what_is_no_token_id_is_refused(value):
    with pytest.raises(ModelError, match=r"config\.json: eos is .*, not a token id"):
        config(eos=value).token_ids("eos")


def test_what_is_not_said_and_has_no_default_is_refused():
    with pytest.raises(ModelError, match=r"config\.json does not say n_layer"):
        config(n_layer=None).whole("n_layer", "nLayers")


@pytest.mark.parametrize("value", [1, 0.5, "yes", True, [1], {"a": 1}])
def test_a_key_that_is_not_understood_is_refused(value):
    found = config(n_layer=2, swa=value)
    found.whole("n_layer")
    with pytest.raises(ModelError, match=r"config\.json: swa = .* is not understood") as fault:
        found.finish()
    assert "take it out of the file" in fault.value.hint


@pytest.mark.parametrize("value", [None, False])
def test_a_key_that_is_off_may_be_unknown(value):
    config(swa=value).finish()


def test_pruned_heads_are_refused():
    config(pruned_heads={}).finish()
    with pytest.raises(ModelError, match="pruned_heads"):
        config(pruned_heads={"0": [1]}).finish()


def test_keys_that_change_nothing_may_stand_there():
    config(**dict.fromkeys(IGNORED, "anything")).finish()


def test_every_key_that_was_asked_for_counts_as_understood():
    found = config(n_ctx=3, block_size=3)
    found.whole("n_ctx", "block_size")
    found.finish()


# The config.json of models that many people have: each is a GPT-2 and computes as one.
RELEASED = {
    "gpt2-medium": {"n_special": 0, "predict_special_tokens": True},
    "gpt2-xl": {"output_past": True},
    "distilgpt2": {"_num_labels": 1},
    "saved in 2019": {
        "num_labels": 2,
        "output_attentions": False,
        "pruned_heads": {},
        "torchscript": False,
        "use_bfloat16": False,
    },
    "saved in 2020": {
        "bad_words_ids": None,
        "chunk_size_feed_forward": 0,
        "do_sample": False,
        "early_stopping": False,
        "length_penalty": 1.0,
        "max_length": 20,
        "num_beams": 1,
        "prefix": None,
        "repetition_penalty": 1.0,
        "return_dict": True,
        "temperature": 1.0,
        "top_k": 50,
        "top_p": 1.0,
        "xla_device": None,
    },
    "saved in 2025": {"_attn_implementation_autoset": True},
}


@pytest.mark.parametrize("name", RELEASED)
def test_configs_of_released_models_are_understood(name):
    Config(json.loads(json.dumps(RELEASED[name])), "config.json").finish()
