import numpy as np
import pytest

from gptscope.model.dtypes import BF16, DTYPES, widen
from tests.helpers.folders import bf16_bits

F32, F64 = np.dtype("float32"), np.dtype("float64")
ALL_16_BITS = np.arange(1 << 16, dtype=np.uint16)


def as_bf16(x):
    return bf16_bits(np.asarray(x)).view(BF16)


@pytest.mark.parametrize(
    ("bits", "value"),
    [
        (0x3F80, 1.0),
        (0xC000, -2.0),
        (0x3E20, 0.15625),
        (0x0000, 0.0),
        (0x7F80, np.inf),
        (0xFF80, -np.inf),
        (0x0001, 2.0**-133),
        (0x7F7F, (2 - 2.0**-7) * 2.0**127),
    ],
)
@pytest.mark.parametrize("dtype", [F32, F64])
def test_bf16_by_the_definition(bits, value, dtype):
    wide = widen(np.array([bits], np.uint16).view(BF16), dtype)
    np.testing.assert_array_equal(wide, np.array([value], dtype), strict=True)


def test_every_bf16_is_widened_exactly():
    wide = widen(ALL_16_BITS.view(BF16), F32)
    np.testing.assert_array_equal(wide.view(np.uint32), ALL_16_BITS.astype(np.uint32) << 16)


def test_every_f16_is_widened_exactly():
    narrow = ALL_16_BITS.view(np.float16)
    narrow = narrow[np.isfinite(narrow)]
    wide = widen(narrow, F32)
    assert wide.dtype == F32
    assert wide.astype(np.float16).tobytes() == narrow.tobytes()


@pytest.mark.parametrize("stored", ["float16", "float32", "float64"])
@pytest.mark.parametrize("asked", [F32, F64])
def test_the_wider_of_the_two_wins(stored, asked):
    x = np.array([1.5, -0.25], stored)
    expected = x.astype(max(x.dtype, asked, key=lambda dtype: dtype.itemsize))
    np.testing.assert_array_equal(widen(x, asked), expected, strict=True)


@pytest.mark.parametrize(("stored", "asked"), [(F32, F32), (F64, F32), (F64, F64)])
def test_what_is_wide_enough_is_not_copied(stored, asked):
    x = np.ones(3, stored)
    assert widen(x, asked) is x


def test_bf16_turns_and_splits_like_any_array():
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    stored = as_bf16(x)
    assert stored.shape == x.shape
    np.testing.assert_array_equal(widen(stored.T, F32), x.T, strict=True)
    for part, expected in zip(np.split(stored, 3, axis=1), np.split(x, 3, axis=1), strict=True):
        np.testing.assert_array_equal(widen(part, F32), expected, strict=True)
    np.testing.assert_array_equal(widen(stored[[1, 0, 1]], F32), x[[1, 0, 1]], strict=True)
    assert np.array_equal(stored, as_bf16(x))
    assert not np.array_equal(stored, as_bf16(x + 1))


def test_names_of_floats_and_integers():
    kinds = {name: dtype.kind for name, dtype in DTYPES.items()}
    assert {name for name, kind in kinds.items() if kind in "fV"} == {"F64", "F32", "F16", "BF16"}
    for name, dtype in DTYPES.items():
        bits = "".join(filter(str.isdigit, name.replace("BF16", "16"))) or "8"
        assert dtype.itemsize * 8 == int(bits), name
