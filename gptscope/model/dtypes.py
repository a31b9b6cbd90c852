"""Number formats of a checkpoint, and their exact widening. NumPy has no bfloat16 of its own."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A structured type of one field marks bits that NumPy cannot read; its views turn and split.
BF16 = np.dtype([("bf16", "<u2")])

DTYPES: Mapping[str, np.dtype[Any]] = {  # as a safetensors header names them
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": BF16,
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
    """The same numbers in at least `dtype`, exactly; no copy where nothing changes."""
    if array.dtype == BF16:
        array = (array["bf16"].astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.promote_types(array.dtype, dtype), copy=False)
