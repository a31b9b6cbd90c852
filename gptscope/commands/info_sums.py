"""What a model takes: parameters by part, memory; and what was read of its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.view import Column, Facts, Part, Table

if TYPE_CHECKING:
    from gptscope.model.checkpoint import Checkpoint
    from gptscope.model.load import Opened
    from gptscope.model.weights import Model

NONE = "not there: the model reads token ids alone"
PASSED_OVER = "nowhere: it holds no parameters"
TIED = {"token table": "token table, output"}
USED_ANYWAY = {"bos_token_id", "eos_token_id", "model_type"}  # by what all families share


def parameters(model: Model) -> Table:
    """Parameters by part, each with the formula that gives its number."""
    from gptscope.analysis.info_formulas import formulas

    found = formulas(model)
    total = sum(formula.value for formula in found.values())
    rows = [(part, f.text, f.value, f.value / total) for part, f in found.items()]
    columns = (Column("part"), Column("formula"), Column("parameters", "count"))
    last = ("total", "", total, 1.0)
    return Table("Parameters", (*columns, Column("share", "probability")), [*rows, last])


def memory(model: Model, checkpoint: Checkpoint) -> Table:
    """Bytes: the weights in the file, widened, a block alone; keys and values that are kept."""
    from gptscope.analysis.info import cache_numbers
    from gptscope.analysis.info_formulas import largest_block
    from gptscope.analysis.tensors import held
    from gptscope.engine.needs import size

    whole, each, s = held(checkpoint.arrays.values()), model.dtype.itemsize, model.spec
    cached = cache_numbers(model) * each
    rows = [
        ("weights as stored", "", whole.bytes),
        ("weights, all widened", f"parameters * {each} bytes", model.n_params * each),
        (
            "the largest block, widened",
            f"its parameters * {each} bytes",
            largest_block(model) * each,
        ),
        ("cache, for each token", f"2 L G d_h * {each} bytes", cached),
        (f"cache, full ({s.n_ctx:,} tokens)", f"2 L G d_h ctx * {each} bytes", cached * s.n_ctx),
    ]
    columns = (Column("what"), Column("formula"), Column("bytes", "count"), Column("size"))
    return Table("Memory", columns, [(*row, size(row[-1])) for row in rows])


def tokenizer(model: Model) -> tuple[Part, ...]:
    """How many tokens there are, and those that begin and end a text."""
    from gptscope.commands.session import token_text

    known = model.tokenizer
    pairs: list[tuple[Column, Any]] = [(Column("tokens", "count"), known.size if known else 0)]
    if known is None:
        pairs = [(Column("tokenizer"), NONE), (Column("why"), model.no_tokenizer)]
    else:
        around = [w for w, has in (("BOS", known.adds_bos), ("EOS", known.adds_eos)) if has]
        pairs += [
            (Column("read from"), known.file),
            (Column("puts around a text"), " and ".join(around) or "nothing"),
            (Column("chat template"), "yes" if known.has_chat_template else "no"),
        ]
    special = [("begins a text", i) for i in (model.bos_id,) if i is not None]
    special += [("ends a text", i) for i in model.end_ids]
    rows = [(what, i, token_text(model, i)) for what, i in special]
    columns = (Column("special token"), Column("id", "id"), Column("token", "token"))
    return Facts("Tokenizer", tuple(pairs)), *((Table("", columns, rows),) if rows else ())


def load_report(opened: Opened) -> tuple[Part, ...]:
    """What became of every tensor, and which keys of the config change nothing."""
    from gptscope.analysis.tensors import beginning
    from gptscope.commands.info_files import said
    from gptscope.model.config import IGNORED

    begun = beginning(opened.tensors.names)
    n, ignored = len(opened.checkpoint.arrays), len(opened.tensors.ignored)
    unused = [key for key in said(opened.checkpoint) if key in IGNORED - USED_ANYWAY]
    pairs = (
        (Column("tensors in the files", "count"), n),
        (Column("of them used", "count"), n - ignored),
        (Column("passed over", "count"), ignored),
        (Column("config keys that change nothing"), ", ".join(unused) or "none"),
        *([(Column("all names begin with"), begun)] if begun else []),
    )
    return Facts("What was read", pairs), places(opened, begun)


def places(opened: Opened, begun: str) -> Table:
    """Where every tensor went; those of all layers share a row."""
    from gptscope.analysis.tensors import by_pattern, place

    names, ignored = opened.tensors.names, opened.tensors.ignored
    rows = []
    for pattern, stored in by_pattern(names).items():
        name = names[stored[0]]
        where = PASSED_OVER if name in ignored else place(name)
        if opened.model.tied:
            where = TIED.get(where, where)
        rows.append((pattern.removeprefix(begun), len(stored), where))
    columns = (Column("tensor"), Column("how many", "count"), Column("goes to"))
    return Table("Where the tensors went; a star stands for the number of a layer", columns, rows)
