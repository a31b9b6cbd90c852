"""Number formats of a checkpoint, and their exact widening. NumPy has no bfloat16 or float8."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

# A structured type of one field marks bits that NumPy cannot read; its views turn and split.
BF16 = np.dtype([("bf16", "<u2")])
F8_E4M3 = np.dtype([("f8_e4m3", "u1")])
F8_E5M2 = np.dtype([("f8_e5m2", "u1")])

DTYPES: Mapping[str, np.dtype[Any]] = {  # as a safetensors header names them
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": BF16,
    "F8_E4M3": F8_E4M3,
    "F8_E5M2": F8_E5M2,
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}


def widen(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The same numbers in at least `dtype`, exactly; a turned view stays one (order K).

    Nothing is copied where nothing changes.
    """
    if array.dtype.names is not None:
        array = _read(array)
    with np.errstate(invalid="ignore"):  # a NaN may be a signalling one
        return array.astype(np.promote_types(array.dtype, dtype), copy=False)


def _read(array: NDArray[Any]) -> NDArray[np.float32]:
    if array.dtype == BF16:  # the upper half of a float32; one pass without a second array
        bits: NDArray[np.uint32] = np.left_shift(array["bf16"], 16, dtype=np.uint32)
        return bits.view(np.float32)
    byte: NDArray[np.uint8] = array["f8_e5m2" if array.dtype == F8_E5M2 else "f8_e4m3"]
    found: NDArray[np.float32] = _float8(array.dtype)[byte]
    return found


@cache
def _float8(dtype: np.dtype[Any]) -> NDArray[np.float32]:
    """The value of each of the 256 bytes.

    Micikevicius et al. 2022, FP8 Formats for Deep Learning, table 1. E5M2 is the upper half of a
    float16. E4M3 has the bias 7 and no infinity: all ones, with either sign, is NaN.
    """
    bits = np.arange(256)
    if dtype == F8_E5M2:
        return (bits.astype(np.uint16) << 8).view(np.float16).astype(np.float32)
    exponent, fraction = bits >> 3 & 15, (bits & 7) / 8
    size = np.where(exponent == 0, fraction * 2.0**-6, (1 + fraction) * 2.0 ** (exponent - 7))
    size[bits & 0x7F == 0x7F] = np.nan
    return np.copysign(size, np.where(bits < 128, 1.0, -1.0)).astype(np.float32)
