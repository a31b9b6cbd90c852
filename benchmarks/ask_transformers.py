"""The question of start.py asked of transformers: the weights of layer 0, head 0, for one text.

python benchmarks/ask_transformers.py "Lily wanted to play with her"
"""

import sys
from pathlib import Path

import torch
from transformers import GPT2LMHeadModel, PreTrainedTokenizerFast

FOLDER = Path(__file__).parents[1] / "models" / "tiny"
LAYER, HEAD = 0, 0


def attention_weights(text: str) -> list[list[float]]:
    """The attention weights [T, T] of one head."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(FOLDER / "tokenizer.json"))
    model = GPT2LMHeadModel.from_pretrained(FOLDER, attn_implementation="eager")
    with torch.inference_mode():
        out = model(torch.tensor([tokenizer.encode(text)]), output_attentions=True)
    weights: list[list[float]] = out.attentions[LAYER][0, HEAD].tolist()
    return weights


def main() -> None:
    """Print one row for each token."""
    for row in attention_weights(sys.argv[1]):
        print(*(f"{weight:.6f}" for weight in row))


if __name__ == "__main__":
    main()
