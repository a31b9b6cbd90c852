"""Trains the toy, and the same model without its mask, on a grammar of twelve words.

    python models/train_toy.py --out models/my-toys
    gptscope experiment mask --models models/my-toys

The grammar is toy/grammar.json beside this file. Both models begin with the same weights and see
the same sentences in the same order; the second may look at all words of a sentence, the next one
too. They go to OUT/toy and OUT/toy-unmasked; the second command measures both on sentences that
were kept out of training. It needs gptscope, PyTorch, tqdm, and less than two minutes.
"""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from shlex import quote

try:
    import torch
    from training.checkpoint import make_folder
    from training.errors import InputError
    from training.export import write_folder
    from training.options import device, natural, positive
    from training.toy import DESIGNS, trained, word_tokenizer

    from gptscope.analysis.grammar import Grammar, read_grammar
    from gptscope.errors import GptscopeError
except ModuleNotFoundError as missing:
    sys.exit(f'train_toy needs {missing.name}: pip install "gptscope[train]"')
except KeyboardInterrupt:  # PyTorch takes seconds
    sys.exit(130)

GRAMMAR = Path(__file__).parent / "toy" / "grammar.json"


def options_of() -> ArgumentParser:
    """The options of the command."""
    options = ArgumentParser("train_toy", description=__doc__)
    options.formatter_class = RawDescriptionHelpFormatter
    add = options.add_argument
    add("--out", type=Path, required=True, help="folder for the folders of the two models")
    add("--seed", type=natural, default=0, help="of the weights and of the order (%(default)s)")
    add("--steps", type=positive, default=4000, help="for each model (%(default)s)")
    add("--device", type=device, default="cpu", help="cpu or cuda (%(default)s)")
    return options


def make(options: Namespace, grammar: Grammar) -> None:
    """Trains both models and writes their folders."""
    for name in DESIGNS:
        make_folder(options.out / name)
    toys = {
        name: trained(grammar, name, options.steps, options.seed, options.device)
        for name in DESIGNS
    }
    for name, model in toys.items():
        write_folder(options.out / name, model, word_tokenizer(grammar))
        print(f"wrote {options.out / name}")
    print(f"measure them: gptscope experiment mask --models {quote(str(options.out))}")


def main(arguments: list[str] | None = None) -> int:
    """The command: exit status 0 done, 1 a fault the user can mend, 2 usage, 130 interrupted."""
    options = options_of().parse_args(arguments)
    torch.set_num_threads(1)  # more only wait for each other at this size
    try:
        make(options, read_grammar(GRAMMAR))
    except (InputError, GptscopeError) as error:
        print(f"train_toy: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("train_toy: stopped, nothing written", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
