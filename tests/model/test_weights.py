import numpy as np
import pytest

from gptscope.model.dtypes import BF16
from gptscope.model.weights import Blocks, Linear, Norm, arrays, widened
from tests.helpers.folders import bf16_bits
from tests.helpers.micro import micro_model, sizes

F32, F64 = np.dtype("float32"), np.dtype("float64")


def test_a_part_that_is_wide_enough_is_handed_on_as_it_is(micro):
    block = micro.blocks[0]
    assert widened(block, F32) is block
    assert widened(None, F32) is None
    assert widened(0.5, F32) == 0.5


def test_a_part_is_widened_with_all_its_arrays():
    narrow = Linear(np.ones((2, 3), "float16"), np.ones(3, "float16"))
    wide = widened(narrow, F32)
    assert (wide.weight.dtype, wide.bias.dtype) == (F32, F32)
    assert narrow.weight.dtype == "float16"
    bits = bf16_bits(np.array([1, 2.5], "float32")).view(BF16)
    np.testing.assert_array_equal(widened(Norm(bits, None), F64).gain, [1, 2.5])
    assert widened(Norm(bits, None), F32).shift is None


def test_only_what_is_narrow_is_copied():
    mixed = Linear(np.ones((2, 3), "float32"), np.ones(3, "float16"))
    wide = widened(mixed, F32)
    assert wide.weight is mixed.weight
    assert wide.bias.dtype == F32


def test_blocks_are_a_sequence_that_widens_when_asked(micro):
    blocks = Blocks(micro.blocks, F64)
    assert len(blocks) == 2
    assert [b.attention.q.weight.dtype for b in blocks] == [F64, F64]
    np.testing.assert_array_equal(
        blocks[-1].mlp.up.weight, micro.blocks[1].mlp.up.weight.astype("float64"), strict=True
    )
    with pytest.raises(IndexError, match="out of range"):
        blocks[2]


def test_a_widened_block_is_not_remembered():
    # Only one block at a time takes memory of its own.
    blocks = Blocks(micro_model().blocks, F64)
    assert blocks[0] is not blocks[0]


def test_a_block_that_is_wide_enough_costs_nothing(micro):
    blocks = Blocks(micro.blocks, F32)
    assert blocks[0] is micro.blocks[0]
    assert blocks[0] is micro.blocks[0]


def test_some_of_the_blocks():
    model = micro_model(sizes(n_layers=3))
    some = Blocks(model.blocks, F64)[1:]
    assert len(some) == 2
    assert some[0].ln1.gain.dtype == F64
    np.testing.assert_array_equal(some[0].ln1.gain, model.blocks[1].ln1.gain)


def test_every_array_of_a_part_or_of_several():
    model = micro_model(sizes(n_layers=1, n_heads=2, d_head=3, d_ff=5))
    block, last, table = model.blocks[0], model.ln_final, model.token_table
    assert len(list(arrays(block))) == 16
    assert sum(x.size for x in arrays(block)) == 24 + 4 * (36 + 6) + (30 + 5) + (30 + 6)
    assert list(map(id, arrays((last, None, (table,))))) == [
        id(last.gain),
        id(last.shift),
        id(table),
    ]
    assert [x.shape for x in arrays(Linear(np.ones((2, 3)), None))] == [(2, 3)]
    assert list(arrays(0.5)) == []


def test_parts_are_frozen(micro):
    with pytest.raises(AttributeError, match="cannot assign"):
        micro.tied = False
