"""Every named value of one pass of a model of transformers."""

from pathlib import Path

import torch

from tests.golden.transformers.reading import Reading, Values
from tests.golden.transformers.record import Pass, Recorder, default_dtype, load


def capture(folder: Path, tokens: list[int], dtype: torch.dtype = torch.float64) -> Values:
    """Every named value of one pass of the model in a folder, all rows."""
    model, run = load(folder, dtype), Pass(dtype)
    recorder = Recorder(model)
    with torch.no_grad(), default_dtype(dtype), recorder.listening(), run:
        logits = model(torch.tensor([tokens]), use_cache=False).logits
        values = Reading(recorder, run.softmaxes).values(logits)
    assert len(run.softmaxes) == model.config.num_hidden_layers
    wrong = [name for name, x in values.items() if f"torch.{x.dtype}" != str(dtype)]
    assert not wrong, wrong
    return values
