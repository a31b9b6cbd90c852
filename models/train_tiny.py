"""Trains a small GPT-2 or Llama on children's stories and exports it in Hugging Face's layout.

    python models/train_tiny.py --data stories.txt.xz --out models/my-tiny
    python models/train_tiny.py --data stories.txt.xz --out models/my-llama --preset llama
    python models/train_tiny.py --data stories.txt.xz --evaluate models/tiny

The text holds one story after another with a line `<|endoftext|>` between them; a file ending in
`.xz` is unpacked while it is read. The full public text is TinyStories (Eldan and Li 2023, licence
CDLA-Sharing-1.0), the Hugging Face dataset roneneldan/TinyStories: its files
TinyStories-train.txt and TinyStoriesV2-GPT4-train.txt can be used as they are:

    python models/train_tiny.py --data TinyStoriesV2-GPT4-train.txt --tokens 204800000 --out my-tiny

Run the same command again after an interruption and it goes on from OUT/checkpoint.pt, with the
same weights at the end as if it had never stopped. It needs PyTorch, tokenizers, safetensors, tqdm.
"""

import sys
from argparse import Namespace
from dataclasses import asdict, replace
from math import ceil

try:
    import torch
    from tokenizers import Tokenizer
    from training.checkpoint import State, load_checkpoint, make_folder
    from training.data import Corpus, characters, read_corpus
    from training.design import PRESETS, Sizes
    from training.errors import InputError
    from training.evaluate import held_out_loss
    from training.export import read_folder, write_folder
    from training.gpt import GPT
    from training.loop import Plan, new_run, train
    from training.options import options_of
    from training.stream import Stream
    from training.tokenizer import fit_tokenizer
except ModuleNotFoundError as missing:
    sys.exit(f"train_tiny needs {missing.name}: pip install torch tokenizers safetensors tqdm")


def note(text: str) -> None:
    """A line for the reader on standard error; standard output is for results."""
    print(text, file=sys.stderr)


def sizes_of(options: Namespace) -> Sizes:
    """The preset's sizes with those asked for; raises InputError if they do not fit together."""
    preset = PRESETS[options.preset]
    asked = {name: getattr(options, name) for name in asdict(preset.sizes)}
    sizes = replace(preset.sizes, **{name: size for name, size in asked.items() if size})
    preset.design.check(sizes)
    return sizes


def tokenizer_of(saved: State | None, given: str | None, corpus: Corpus, vocab: int) -> Tokenizer:
    """The checkpoint's tokenizer, or the given one, or a new one fitted to the text."""
    if saved or given:
        return Tokenizer.from_str(saved["tokenizer"] if saved else given)
    note("fitting the tokenizer")
    tokenizer = fit_tokenizer(corpus.train, vocab)
    if tokenizer.get_vocab_size() < vocab:
        note(f"the text gives only {tokenizer.get_vocab_size()} tokens, not {vocab}")
    return tokenizer


def settings_of(options: Namespace, corpus: Corpus, steps: int) -> State:
    """All that the weights depend on; a checkpoint made with others cannot be gone on from."""
    chosen = {name: getattr(options, name) for name in ("preset", "batch", "seed", "tokenizer")}
    return asdict(sizes_of(options)) | chosen | {"steps": steps, "text": corpus.fingerprint()}


def trained(options: Namespace, corpus: Corpus) -> tuple[GPT, Tokenizer]:
    """The model after all its steps, those before an interruption taken from the checkpoint."""
    sizes = sizes_of(options)
    steps = options.steps or ceil(options.tokens / (options.batch * sizes.ctx))
    settings = settings_of(options, corpus, steps)
    path = options.out / "checkpoint.pt"
    saved = load_checkpoint(path, settings)
    tokenizer = tokenizer_of(saved, options.tokenizer, corpus, sizes.vocab)
    torch.manual_seed(options.seed)
    sizes = replace(sizes, vocab=tokenizer.get_vocab_size())
    model = GPT(sizes, PRESETS[options.preset].design).to(options.device)
    run = new_run(model)
    if saved:
        run.restore(saved)
        note(f"going on from {path}, step {run.step:,} of {steps:,}")
    stream = Stream(corpus.train, tokenizer, sizes.ctx, options.batch, options.seed)
    fixed = {"settings": settings, "tokenizer": tokenizer.to_str()}
    train(run, stream, Plan(steps, options.checkpoint_every, path, fixed))
    return model, tokenizer


def make(options: Namespace) -> None:
    """Trains a model, exports it and prints its held-out loss."""
    sizes_of(options)
    make_folder(options.out)
    corpus = read_corpus(options.data, options.first)
    note(f"{len(corpus.train):,} stories to learn from, {len(corpus.held_out):,} held out")
    model, tokenizer = trained(options, corpus)
    write_folder(options.out, model, tokenizer, characters(corpus.train))
    note(f"wrote {options.out} (its checkpoint.pt is not part of the model and may be deleted)")
    print(held_out_loss(model, tokenizer, corpus.held_out, model.sizes.ctx))


def evaluate(options: Namespace) -> None:
    """Prints the held-out loss of an exported folder."""
    model, tokenizer = read_folder(options.evaluate)
    corpus = read_corpus(options.data, options.first)
    print(held_out_loss(model.to(options.device), tokenizer, corpus.held_out, model.sizes.ctx))


def main(arguments: list[str] | None = None) -> int:
    """The command: exit status 0 done, 1 a fault the user can mend, 2 usage, 130 interrupted."""
    options = options_of("train_tiny", __doc__).parse_args(arguments)
    try:
        evaluate(options) if options.evaluate else make(options)
    except InputError as error:
        note(f"train_tiny: {error}")
        return 1
    except KeyboardInterrupt as stop:
        note(f"train_tiny: {str(stop) or 'stopped'}; run the same command again to go on")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
