"""A batch of cases in a process of its own, where memory and time of each case are bounded.

    python -m tests.fuzz.batch models 0 2000

The last line is a JSON object: how many cases, how many were opened, and what escaped.
"""

import json
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

import gptscope
from gptscope.engine.generate import draws
from gptscope.engine.sampling import Sampling
from gptscope.errors import GptscopeError
from gptscope.model.header import read_header
from tests.fuzz import models, texts

MEMORY = 64 << 20  # bytes that the whole batch may take after it has warmed up
LONGEST = 2000  # characters of a sentence, the name of a folder included
SECONDS = 5  # for one case
# Refused here alone: types that are not computed in, a key twice, more axes than NumPy has.
STRICTER = ("which is not supported", " twice", " has the shape ")
CASES = ("gpt2", "gpt2-variant", "nanogpt", "toy", "toy-rotary", "toy-post")


class Late(BaseException):
    """A case took too long."""


def late(*_):
    raise Late


def open_and_run(folder):
    """What the program does with a model: open it, read a text, a pass, a few new tokens."""
    model = gptscope.load(folder)
    ids = [1, 2, 0]
    if model.tokenizer is not None:
        ids = model.tokenizer.encode("the cat eats fish and") or ids
        model.tokenizer.tokens(ids)
        model.tokenizer.decode(ids)
    trace = gptscope.trace(model, ids)
    assert trace.logits.shape == (len(ids), model.spec.n_vocab)
    list(draws(model, tuple(ids), 2, Sampling(0.0), 0))


def model_case(folder, parts):
    """One folder: whether it was opened; anything but the program's own faults goes through."""
    files = {
        "model.safetensors": parts.weights,
        "config.json": parts.config,
        "tokenizer.json": parts.tokenizer,
    }
    for name, data in files.items():
        path = folder / name
        path.unlink(missing_ok=True)
        if data is not None:
            path.write_bytes(data)
    agree_with_the_library(folder / "model.safetensors")
    try:
        open_and_run(folder)
    except GptscopeError as fault:
        check_sentence(fault.message)
        return False
    return True


def check_sentence(message):
    """Something is said, and not for ever."""
    assert 0 < len(message) < LONGEST, message[:200]


def agree_with_the_library(path):
    """What is taken as safetensors here is so for the library of that name, and the reverse."""
    try:
        read_header(path)
        ours = ""
    except GptscopeError as fault:
        ours = fault.message
    try:
        with safe_open(path, framework="numpy"):
            pass
        theirs = ""
    except (SafetensorError, OSError, ValueError) as fault:
        theirs = str(fault)
    assert bool(ours) == bool(theirs) or any(why in ours for why in STRICTER), (
        f"here: {ours or 'good'}; there: {theirs or 'good'}"
    )


def model_cases(seed, count):
    with tempfile.TemporaryDirectory() as name:
        originals = [models.pristine(case) for case in CASES]
        for parts in originals:  # what is imported and started once does not count
            assert model_case(Path(name), parts), "the pristine models open"
        bound_memory()
        for parts in models.cases(seed, count, originals):
            yield parts, lambda parts=parts: model_case(Path(name), parts)


def text_cases(seed, count):
    with texts.tokenizers_of() as found:
        bound_memory()
        for case in texts.cases(seed, count, found):
            yield case[1], lambda case=case: texts.check(*case)


def bound_memory():
    """From here on, the process cannot take more than so much."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main(kind, seed, count):
    """Run the cases, and say how it went."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    signal.signal(signal.SIGALRM, late)
    ends, escaped, slowest = Counter(), [], 0.0
    for case, call in {"models": model_cases, "texts": text_cases}[kind](seed, count):
        started = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            ends["good" if call() else "refused"] += 1
        except BaseException as fault:
            signal.setitimer(signal.ITIMER_REAL, 0)
            if isinstance(fault, KeyboardInterrupt):
                raise
            where = traceback.format_exception(fault)[-3:]
            escaped.append({"case": repr(case)[:3000], "fault": "".join(where)[-1500:]})
        signal.setitimer(signal.ITIMER_REAL, 0)
        slowest = max(slowest, time.perf_counter() - started)
    told = {**ends, "slowest": slowest, "escaped": len(escaped), "which": escaped[:20]}
    sys.stdout.write(f"{json.dumps(told)}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
