"""What a training command can be told."""

from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from pathlib import Path

import torch

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


def options_of(name: str, about: str) -> ArgumentParser:
    """The options of a training command, with the sizes of the shipped tiny as defaults."""
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
    add("--vocab", type=positive, default=4096, help="tokens in the vocabulary (%(default)s)")
    add("--ctx", type=positive, default=128, help="longest text in tokens (%(default)s)")
    add("--width", type=positive, default=128, help="numbers per token (%(default)s)")
    add("--blocks", type=positive, default=4, help="transformer blocks (%(default)s)")
    add("--heads", type=positive, default=4, help="attention heads per block (%(default)s)")
    add("--ff", type=positive, default=512, help="feed-forward width (%(default)s)")
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
