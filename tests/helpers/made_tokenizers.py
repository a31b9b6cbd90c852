"""Small tokenizers of every kind that GPTs have, made in memory."""

import json
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer, UnigramTrainer

GPT2 = Path(__file__).parents[3] / "shared" / "data" / "gpt2-tokenizer"
CORPUS = [
    "Lily wanted to play with her red ball in the park. The cat eats the fish!",
    "One day, Lily and her dog went out\nto look for the big tree, and they sang a song.",
    "\u00c9cole, na\u00efve caf\u00e9; don't you see it?  Two spaces, 1 + 1 = 2.",
] * 3
BYTES = [f"<0x{b:02X}>" for b in range(256)]
UNKNOWN = "<unk>"


def llama(*, metaspace=False):
    """Llama 2's kind: spaces as a low line, bytes for what is not known, BOS before a text."""
    inner = tokenizers.Tokenizer(models.BPE(unk_token=UNKNOWN, byte_fallback=True, fuse_unk=True))
    if metaspace:
        inner.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", "first", split=False)
    else:
        steps = [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
        inner.normalizer = normalizers.Sequence(steps)
    special = [UNKNOWN, "<s>", "</s>"]
    trainer = BpeTrainer(
        vocab_size=420, special_tokens=[*special, *BYTES], show_progress=False, max_token_length=9
    )
    inner.train_from_iterator(CORPUS, trainer)
    inner = with_added(inner, special)
    inner.decoder = decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    inner.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return inner


def gemma():
    """Gemma's kind: as Llama's, with nothing put before the first word."""
    inner = llama()
    inner.normalizer = normalizers.Replace(" ", "\u2581")
    inner.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return inner


def with_added(inner, special):
    """The same with these tokens alone added: those for bytes are plain pieces."""
    values = json.loads(inner.to_str())
    values["added_tokens"] = [one for one in values["added_tokens"] if one["content"] in special]
    return tokenizers.Tokenizer.from_str(json.dumps(values))


def unigram():
    """T5's kind: the likeliest pieces; EOS after a text; characters made alike (NFKC)."""
    inner = tokenizers.Tokenizer(models.Unigram())
    inner.normalizer = normalizers.NFKC()
    inner.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", "always")
    special = ["</s>", UNKNOWN]
    trainer = UnigramTrainer(
        vocab_size=120, special_tokens=special, unk_token=UNKNOWN, show_progress=False
    )
    inner.train_from_iterator(CORPUS, trainer)
    inner.decoder = decoders.Metaspace("\u2581", "always")
    inner.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 0)]
    )
    return inner


def word_level(unknown=UNKNOWN):
    """Whole words, put together with a space."""
    vocab = {word: i for i, word in enumerate((unknown, "the", "cat", "eats", "fish"))}
    inner = tokenizers.Tokenizer(models.WordLevel(vocab, unk_token=unknown))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return inner


def word_piece():
    """BERT's kind: ## goes on with a word."""
    pieces = [UNKNOWN, "play", "##ing", "the", "cat", ".", "##s"]
    vocab = {piece: i for i, piece in enumerate(pieces)}
    inner = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token=UNKNOWN))
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece("##", cleanup=True)
    return inner


def byte_level(vocab_size=400, **settings):
    """GPT-2's kind: a character for each byte."""
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(**({"add_prefix_space": False} | settings))
    inner.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=vocab_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    inner.train_from_iterator(CORPUS, trainer)
    return inner


def gpt1():
    """GPT's kind: lower-case words, whose last piece ends in </w>."""
    inner = tokenizers.Tokenizer(models.BPE(unk_token=UNKNOWN, end_of_word_suffix="</w>"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=True)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.BPEDecoder(suffix="</w>")
    trainer = BpeTrainer(
        vocab_size=200, special_tokens=[UNKNOWN], end_of_word_suffix="</w>", show_progress=False
    )
    inner.train_from_iterator(CORPUS, trainer)
    return inner


KINDS = {
    "byte_level": byte_level,
    "gemma": gemma,
    "gpt1": gpt1,
    "llama": llama,
    "llama_metaspace": lambda: llama(metaspace=True),
    "unigram": unigram,
    "word_level": word_level,
    "word_piece": word_piece,
}


def write_pair(folder, inner, **files):
    """A folder with vocab.json and merges.txt, and other files by their names without .json."""
    folder.mkdir(parents=True, exist_ok=True)
    inner.model.save(str(folder))
    for name, values in files.items():
        (folder / f"{name}.json").write_text(json.dumps(values), "utf-8")
    return folder


def write_json(folder, inner, **files):
    """A folder with tokenizer.json, and other files by their names without .json."""
    folder.mkdir(parents=True, exist_ok=True)
    inner.save(str(folder / "tokenizer.json"))
    for name, values in files.items():
        (folder / f"{name}.json").write_text(json.dumps(values), "utf-8")
    return folder
