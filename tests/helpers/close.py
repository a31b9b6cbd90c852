"""How close is close: the one place of the tolerances."""

import numpy as np

# Of the tensor's scale: the largest expected magnitude, and at least 1.
OF_THE_SCALE = {"float32": 2e-5, "float64": 1e-10}
ATTENTION_WEIGHT = 1e-5  # float32; they are at most 1, and are read to the last digit
REMADE = 1e-12  # of the scale: the same float64 formula on another machine


def tolerance(name: str, expected: np.ndarray, dtype: str) -> float:
    """The largest error allowed in the value of this name, computed in this dtype."""
    if name.endswith(".weights") and dtype == "float32":
        return ATTENTION_WEIGHT
    return OF_THE_SCALE[dtype] * scale(expected)


def scale(expected: np.ndarray) -> float:
    """The largest finite magnitude, and at least 1."""
    finite = np.abs(expected[np.isfinite(expected)])
    return max(1.0, float(finite.max(initial=0)))


def assert_close(
    name: str,
    actual: np.ndarray,
    expected: np.ndarray,
    dtype: str = "float32",
    allowed: float | None = None,
) -> None:
    """Same dtype, same shape, -inf in the same places, and no error above the allowed one."""
    actual, expected = np.asarray(actual), np.asarray(expected, np.float64)
    assert actual.dtype == dtype, f"{name}: dtype {actual.dtype}, expected {dtype}"
    assert actual.shape == expected.shape, f"{name}: shape {actual.shape}, not {expected.shape}"
    if allowed is None:
        allowed = tolerance(name, expected, dtype)
    error = errors(actual.astype(np.float64), expected)
    if error.max(initial=0) > allowed:
        at = tuple(int(i) for i in np.unravel_index(error.argmax(), error.shape))
        place = f"got {actual[at]!r}, expected {expected[at]!r}, allowed {allowed:.1e}"
        raise AssertionError(f"{name}: largest error {error[at]:.2e} at {at}: {place}")


def errors(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """|actual - expected|; infinite where just one is -inf, or either is NaN or +inf."""
    hidden = (actual == -np.inf) & (expected == -np.inf)
    finite = np.isfinite(actual) & np.isfinite(expected)
    difference = np.full(expected.shape, np.inf)
    difference[hidden] = 0
    difference[finite] = np.abs(actual[finite] - expected[finite])
    return difference
