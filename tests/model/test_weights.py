from dataclasses import replace
from weakref import ref

import numpy as np
import pytest

from gptscope.model.blocks import Blocks, outlines
from gptscope.model.dtypes import BF16
from gptscope.model.weights import Linear, n_numbers, rows, tables
from tests.helpers.folders import bf16_bits
from tests.helpers.micro import micro_model, sizes


def counting(model):
    """Blocks that note which of them were made."""
    made = []
    blocks = Blocks(lambda i: made.append(i) or replace(model.blocks[i]), model.blocks)
    return blocks, made


def test_blocks_are_a_sequence_made_when_asked():
    model = micro_model(sizes(n_layers=3))
    blocks, made = counting(model)
    assert (len(blocks), made) == (3, [])
    assert blocks[1].mlp is model.blocks[1].mlp
    assert blocks[-1].mlp is model.blocks[2].mlp
    assert made == [1, 2]
    with pytest.raises(IndexError, match="out of range"):
        blocks[3]
    assert [block.mlp for block in blocks] == [block.mlp for block in model.blocks]


def test_the_last_block_alone_is_kept():
    blocks, made = counting(micro_model(sizes(n_layers=2)))
    first = blocks[0]
    assert blocks[0] is first
    assert blocks[-2] is first
    gone = ref(first)
    del first
    blocks[1]
    assert gone() is None
    blocks[0]
    assert made == [0, 1, 0]


def test_some_of_the_blocks():
    model = micro_model(sizes(n_layers=3))
    blocks, made = counting(model)
    assert [block.ln1 for block in blocks[1:]] == [block.ln1 for block in model.blocks[1:]]
    assert made == [1, 2]


def test_outlines_cost_no_reading():
    model = micro_model(sizes(n_layers=2))
    blocks, made = counting(model)
    assert outlines(blocks) is model.blocks
    assert outlines(model.blocks) is model.blocks
    assert made == []


def test_rows_of_a_table_are_widened():
    bits = bf16_bits(np.array([[1, 2.5], [3, 4], [5, 6]], "float32")).view(BF16)
    for dtype in ("float32", "float64"):
        found = rows(bits, np.array([2, 0]), np.dtype(dtype))
        np.testing.assert_array_equal(found, np.array([[5, 6], [1, 2.5]], dtype), strict=True)


def test_every_table_of_a_part_or_of_several():
    model = micro_model(sizes(n_layers=1, n_heads=2, d_head=3, d_ff=5))
    block, last, table = model.blocks[0], model.ln_final, model.token_table
    assert len(list(tables(block))) == 16
    assert n_numbers(block) == 24 + 4 * (36 + 6) + (30 + 5) + (30 + 6)
    assert list(map(id, tables((last, None, (table,))))) == [
        id(last.gain),
        id(last.shift),
        id(table),
    ]
    assert [x.shape for x in tables(Linear(np.ones((2, 3)), None))] == [(2, 3)]
    assert list(tables(0.5)) == []


def test_parts_are_frozen(micro):
    with pytest.raises(AttributeError, match="cannot assign"):
        micro.tied = False
