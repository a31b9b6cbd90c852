"""What a training command can be told."""

from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from pathlib import Path

import torch

from training.configs import END_ID
from training.data import END
from training.design import PRESETS
from training.errors import InputError
from training.tokenizer import read_tokenizer

TOKENS = 37_300_000


def natural(text: str) -> int:
    """A whole number from 0 on, or argparse's error."""
    if not (text.isascii() and text.isdecimal()):
        raise ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def positive(text: str) -> int:
    """A whole number above 0, or argparse's error."""
    if not natural(text):
        raise ArgumentTypeError("it must be above 0")
    return int(text)


def device(text: str) -> torch.device:
    """A device that PyTorch can use here, or argparse's error."""
    try:
        return torch.empty(0, device=text).device
    except (RuntimeError, AssertionError) as error:
        raise ArgumentTypeError(f"PyTorch has no {text!r} here") from error


def tokenizer(text: str) -> str:
    """The content of a `tokenizer.json`, or argparse's error."""
    try:
        found = read_tokenizer(Path(text))
    except InputError as error:
        raise ArgumentTypeError(str(error)) from error
    if found.id_to_token(END_ID) != END:
        raise ArgumentTypeError(f"{text} cannot be used: its token {END_ID} must be {END}")
    return found.to_str()


def add_sizes(options: ArgumentParser) -> None:
    """An option for each size, without a value if it is to be the preset's."""
    add = options.add_argument
    words = options.add_mutually_exclusive_group()
    words.add_argument("--vocab", type=positive, help="tokens in the vocabulary (4096)")
    words.add_argument(
        "--tokenizer", type=tokenizer, metavar="FILE", help="a tokenizer.json, instead of a new one"
    )
    add("--ctx", type=positive, help="longest text in tokens (128)")
    add("--width", type=positive, help="numbers per token (128)")
    add("--blocks", type=positive, help="transformer blocks (4)")
    add("--heads", type=positive, help="attention heads per block (4)")
    add("--kv-heads", type=positive, help="those with keys and values (all; llama: 2)")
    add("--ff", type=positive, help="feed-forward width (512; llama: 344)")


def options_of(name: str, about: str) -> ArgumentParser:
    """The options of a training command; a preset's sizes are those of the shipped model."""
    options = ArgumentParser(name, description=about)
    options.formatter_class = RawDescriptionHelpFormatter
    add = options.add_argument
    add("--data", type=Path, required=True, help="the stories, plain text or .xz")
    todo = options.add_mutually_exclusive_group(required=True)
    todo.add_argument("--out", type=Path, help="folder for the model and its checkpoint")
    todo.add_argument("--evaluate", type=Path, metavar="FOLDER", help="only give its held-out loss")
    length = options.add_mutually_exclusive_group()
    length.add_argument("--tokens", type=positive, default=TOKENS, help="to see (%(default)s)")
    length.add_argument("--steps", type=positive, help="steps to make, instead of --tokens")
    add("--first", type=positive, metavar="N", help="use only the first N stories that are kept")
    add("--preset", choices=PRESETS, default="gpt2", help="design and sizes (%(default)s)")
    add_sizes(options)
    add("--batch", type=positive, default=16, help="windows in a step (%(default)s)")
    add("--seed", type=natural, default=0, help="of the weights and of the order (%(default)s)")
    add("--checkpoint-every", type=positive, default=500, metavar="STEPS", help="(%(default)s)")
    add(
        "--device",
        type=device,
        default="cpu",
        help="where PyTorch computes, as cpu or cuda (%(default)s)",
    )
    return options
