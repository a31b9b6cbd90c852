"""A model of transformers, and a record of what goes through it in one pass.

transformers computes parts of a float64 model in float32: norms, softmax, rotary speeds and turns.
`Pass` makes those float64 too, so that the truth is exact to the last digits of float64.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

RENAMED = {"embed_out.weight": "lm_head.weight"}  # NeoX's files keep the name of its own code


class Pass(TorchFunctionMode):
    """Writes down each softmax; in float64, whoever asks for float32 gets float64."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.exact = dtype == torch.float64
        self.softmaxes: list[tuple[Tensor, Tensor]] = []

    def widened(self, x: object) -> object:
        """float64 for float32."""
        return torch.float64 if self.exact and x is torch.float32 else x

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """The call as it was meant."""
        if self.exact and func is Tensor.float:
            func = Tensor.double
        args = tuple(self.widened(x) for x in args)
        out = func(*args, **{key: self.widened(x) for key, x in (kwargs or {}).items()})
        if func is nn.functional.softmax:
            self.softmaxes.append((args[0], out))
        return out


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Within it, tensors made of plain numbers have this dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def load(folder: Path, dtype: torch.dtype) -> Any:
    """The model in a folder, built in this dtype; every tensor of the file has its place."""
    config = transformers.AutoConfig.from_pretrained(folder)
    with default_dtype(dtype), Pass(dtype):
        model = transformers.AutoModelForCausalLM.from_config(
            config, attn_implementation="eager", dtype=dtype
        )
    stored = load_file(folder / "model.safetensors")
    stored = {RENAMED.get(name, name): x for name, x in stored.items()}
    missing, unexpected = model.load_state_dict(stored, strict=False)
    assert not unexpected
    assert set(missing) <= set(model.all_tied_weights_keys), missing
    return model.eval()


class Recorder:
    """The first input and the output of every module, and each layer's turned queries and keys."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.inputs: dict[str, Tensor] = {}
        self.outputs: dict[str, Tensor] = {}
        self.turned: list[tuple[Tensor, Tensor]] = []

    def hook(self, name: str) -> Any:
        """What a module calls after its forward."""

        def note(_: nn.Module, args: Any, kwargs: Any, out: Any) -> None:
            first = args[0] if args else kwargs.get("hidden_states")
            if first is not None:
                self.inputs[name] = first
            self.outputs[name] = out[0] if isinstance(out, (tuple, list)) else out

        return note

    def attend(self, original: Any) -> Any:
        """An attention function that also writes down what it was given."""

        def attention(module: Any, query: Tensor, key: Tensor, *args: Any, **kwargs: Any) -> Any:
            self.turned.append((query, key))
            return original(module, query, key, *args, **kwargs)

        return attention

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Within it, everything is written down."""
        home = sys.modules[type(self.model).__module__]
        with ExitStack() as stack:
            for name, module in self.model.named_modules():
                handle = module.register_forward_hook(self.hook(name), with_kwargs=True)
                stack.callback(handle.remove)
            if original := getattr(home, "eager_attention_forward", None):
                listener = patch.object(home, "eager_attention_forward", self.attend(original))
                stack.enter_context(listener)
            yield
