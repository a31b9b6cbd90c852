"""Trains the toy, and the same model without its mask, on a grammar of twelve words.

    python models/train_toy.py --out models/my-toys
    python models/train_toy.py --evaluate models

The grammar is models/toy/grammar.json. Both models begin with the same weights and see the same
sentences in the same order; the second may look at all words of a sentence, the next one too. They
go to OUT/toy and OUT/toy-unmasked, and the loss of both on sentences that were kept out of training
is printed. It needs PyTorch, tokenizers, safetensors, tqdm, and less than two minutes.
"""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

try:
    import torch
    from training.checkpoint import make_folder
    from training.errors import InputError
    from training.export import read_folder, write_folder
    from training.gpt import GPT
    from training.grammar import Grammar, read_grammar
    from training.mask import report
    from training.options import device, natural, positive
    from training.toy import DESIGNS, trained, word_tokenizer
except ModuleNotFoundError as missing:
    sys.exit(f"train_toy needs {missing.name}: pip install torch tokenizers safetensors tqdm")

GRAMMAR = Path(__file__).parent / "toy" / "grammar.json"


def options_of() -> ArgumentParser:
    """The options of the command."""
    options = ArgumentParser("train_toy", description=__doc__)
    options.formatter_class = RawDescriptionHelpFormatter
    todo = options.add_mutually_exclusive_group(required=True)
    todo.add_argument("--out", type=Path, help="folder for the folders of the two models")
    todo.add_argument("--evaluate", type=Path, metavar="FOLDER", help="only give their losses")
    add = options.add_argument
    add("--seed", type=natural, default=0, help="of the weights and of the order (%(default)s)")
    add("--steps", type=positive, default=4000, help="for each model (%(default)s)")
    add("--device", type=device, default="cpu", help="cpu or cuda (%(default)s)")
    return options


def make(options: Namespace, grammar: Grammar) -> dict[str, GPT]:
    """Trains both models and writes their folders."""
    for name in DESIGNS:
        make_folder(options.out / name)
    toys = {
        name: trained(grammar, name, options.steps, options.seed, options.device)
        for name in DESIGNS
    }
    for name, model in toys.items():
        write_folder(options.out / name, model, word_tokenizer(grammar))
        print(f"wrote {options.out / name}", file=sys.stderr)
    return toys


def read(options: Namespace) -> dict[str, GPT]:
    """Both models from their folders."""
    return {name: read_folder(options.evaluate / name)[0].to(options.device) for name in DESIGNS}


def main(arguments: list[str] | None = None) -> int:
    """The command: exit status 0 done, 1 a fault the user can mend, 2 usage, 130 interrupted."""
    options = options_of().parse_args(arguments)
    torch.set_num_threads(1)  # more only wait for each other at this size
    try:
        grammar = read_grammar(GRAMMAR)
        toys = read(options) if options.evaluate else make(options, grammar)
        print(report(grammar, *toys.values()))
    except InputError as error:
        print(f"train_toy: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("train_toy: stopped, nothing written", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
