import tracemalloc

import numpy as np
import pytest

from gptscope.model.dtypes import BF16, DTYPES, F8_E4M3, F8_E5M2, widen
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


ALL_BYTES = np.arange(256, dtype=np.uint8)
E4M3 = {0x00: 0.0, 0x38: 1.0, 0xC0: -2.0, 0x01: 2.0**-9, 0x07: 7 * 2.0**-9, 0x08: 2.0**-6}
E4M3 |= {0x7E: 448.0, 0xFE: -448.0, 0x7F: np.nan, 0xFF: np.nan, 0x78: 256.0}
E5M2 = {0x00: 0.0, 0x3C: 1.0, 0xC0: -2.0, 0x01: 2.0**-16, 0x03: 3 * 2.0**-16, 0x04: 2.0**-14}
E5M2 |= {0x7B: 57344.0, 0xFB: -57344.0, 0x7C: np.inf, 0xFC: -np.inf, 0x7D: np.nan, 0xFF: np.nan}


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize(("kind", "values"), [(F8_E4M3, E4M3), (F8_E5M2, E5M2)])
def test_f8_by_the_definition(kind, values, dtype):
    wide = widen(np.array(list(values), np.uint8).view(kind), dtype)
    np.testing.assert_array_equal(wide, np.array(list(values.values()), dtype), strict=True)


@pytest.mark.parametrize("kind", [F8_E4M3, F8_E5M2])
def test_minus_zero_stays_it(kind):
    wide = widen(np.array([0x80], np.uint8).view(kind), F32)
    assert np.signbit(wide[0])
    assert wide[0] == 0


@pytest.mark.parametrize(
    ("kind", "name"), [(F8_E4M3, "float8_e4m3fn"), (F8_E5M2, "float8_e5m2")], ids=str
)
def test_every_f8_is_what_pytorch_makes_of_it(kind, name):
    torch = pytest.importorskip("torch")
    expected = torch.from_numpy(ALL_BYTES).view(getattr(torch, name)).float().numpy()
    wide = widen(ALL_BYTES.view(kind), F32)
    np.testing.assert_array_equal(wide, expected, strict=True)
    sure = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(wide)[sure], np.signbit(expected)[sure])


@pytest.mark.parametrize("kind", ["BF16", "F16", "F8_E4M3", "F8_E5M2"])
def test_a_turned_view_widens_into_a_turned_view(kind):
    stored = np.zeros((6, 4), DTYPES[kind])
    for dtype in (F32, F64):
        assert widen(stored.T, dtype).flags.f_contiguous
        assert widen(stored[:, :3].T, dtype).flags.f_contiguous
        assert widen(stored, dtype).flags.c_contiguous


def test_bf16_takes_no_second_array():
    stored = np.zeros((1000, 1000), BF16)
    tracemalloc.start()
    widen(stored.T, F32)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * 4 * stored.size


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
    floats = {"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"}
    assert {name for name, kind in kinds.items() if kind in "fV"} == floats
    for name, dtype in DTYPES.items():
        bits = "".join(filter(str.isdigit, name.partition("_")[0])) or "8"
        assert dtype.itemsize * 8 == int(bits), name
