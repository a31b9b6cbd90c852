"""A trained GPT as a folder in Hugging Face's layout of its family, and back."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from tokenizers import Tokenizer
from torch import Tensor, nn

from training.checkpoint import write_whole
from training.configs import config_of, read_config
from training.errors import InputError
from training.gpt import GPT
from training.layouts import LAYOUTS
from training.tokenizer import read_tokenizer


def pieces(model: GPT) -> Iterator[tuple[str, list[nn.Module]]]:
    """Every name of the layout with the modules whose weights, joined, it holds."""
    layout = LAYOUTS[model.design.family]
    for name, ours in layout.whole.items():
        yield name, [model.get_submodule(our) for our in ours]
    for layer, block in enumerate(model.blocks):
        for name, ours in layout.block.items():
            yield name.format(layer=layer), [block.get_submodule(our) for our in ours]


def parameters(model: GPT) -> Iterator[tuple[str, list[nn.Parameter], bool]]:
    """Every tensor's name, the parameters joined in it, and whether it is stored as [in, out]."""
    stored_turned = LAYOUTS[model.design.family].turned
    for name, modules in pieces(model):
        for kind, _ in modules[0].named_parameters():
            turned = stored_turned and isinstance(modules[0], nn.Linear) and kind == "weight"
            yield f"{name}.{kind}", [module.get_parameter(kind) for module in modules], turned


@torch.no_grad()
def tensors_of(model: GPT) -> dict[str, Tensor]:
    """The weights under their names in the layout, float32."""
    tensors = {}
    for name, joined, turned in parameters(model):
        tensor = torch.cat(list(joined)).float().cpu()
        tensors[name] = (tensor.T if turned else tensor).contiguous()  # [out, in] -> [in, out]
    return tensors


@torch.no_grad()
def fill(model: GPT, tensors: dict[str, Tensor]) -> None:
    """Copies the layout's tensors into the model; raises InputError if one is missing or wrong."""
    for name, joined, turned in parameters(model):
        if name not in tensors:
            raise InputError(f"model.safetensors has no {name}")
        tensor = tensors[name].T if turned else tensors[name]
        for parameter, part in zip(joined, tensor.chunk(len(joined)), strict=True):
            if part.shape != parameter.shape:
                raise InputError(f"{name} has the shape {list(tensors[name].shape)}, not config's")
            parameter.copy_(part)


def as_json(values: dict[str, Any]) -> bytes:
    """A JSON file in plain ASCII."""
    return (json.dumps(values, indent=2) + "\n").encode()


def write_folder(
    folder: Path, model: GPT, tokenizer: Tokenizer, text: dict[str, Any] | None = None
) -> None:
    """Writes `config.json`, `model.safetensors` and `tokenizer.json`, each whole or not at all.

    `text`, what the model knows of characters, goes to `text.json`: gptscope reads it.
    """
    config = as_json(config_of(model.sizes, model.design))
    weights = save(tensors_of(model), {"format": "pt"})
    words = tokenizer.to_str(pretty=True)
    write_whole(folder / "config.json", lambda file: file.write(config))
    write_whole(folder / "model.safetensors", lambda file: file.write(weights))
    write_whole(folder / "tokenizer.json", lambda file: file.write(words.encode()))
    if text is not None:
        write_whole(folder / "text.json", lambda file: file.write(as_json(text)))


def read_folder(folder: Path) -> tuple[GPT, Tokenizer]:
    """The model and tokenizer of an exported folder; raises InputError if a file is not right."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        tensors = load_file(folder / "model.safetensors")
        model = GPT(*read_config(config))
    except KeyError as error:
        raise InputError(f"{folder / 'config.json'} does not say {error}") from error
    except (OSError, ValueError, SafetensorError) as error:
        raise InputError(f"cannot open {folder}: {error}") from error
    fill(model, tensors)
    return model, read_tokenizer(folder / "tokenizer.json")
