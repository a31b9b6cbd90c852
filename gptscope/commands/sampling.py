"""Options for choosing the next token, shared by `next` and `generate`."""

from typing import Annotated

import typer

Temperature = Annotated[
    float,
    typer.Option(help="Divides the logits: below 1 bolder, above 1 wilder, 0 takes the best."),
]
TopK = Annotated[
    int | None, typer.Option("--top-k", help="Keep the k likeliest, then renormalise.")
]
TopP = Annotated[
    float | None, typer.Option("--top-p", help="Keep the fewest that reach p, then renormalise.")
]
