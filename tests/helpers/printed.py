"""Printed numbers of two machines, which may round the last digit differently."""

import re

NUMBER = re.compile(r"-?\d+\.\d+")
# Powers of ten, and whatever follows the words "remainder" and "difference".
NOISE = re.compile(r" *[+-]?\d(\.\d+)?e[+-]\d\d|(?<=remainder|ifference).*$", re.MULTILINE)


NOTHING = re.compile(r"(?<= )0(?= |$)")  # beside noise: less than that
# `check` names the value that is nearest its limit: which it is, rounding says.
NEAREST = re.compile(r"(?<=nearest its limit:)\s+\S+")


def without_noise(text):
    """The text with what is left of rounding taken out: it differs from machine to machine."""
    lines = NOISE.sub(" noise", text).split("\n")
    quiet = [NOTHING.sub("noise", line) if " noise" in line else line for line in lines]
    quiet = [re.sub(r" +(?=noise)", " ", line) for line in quiet]
    return NEAREST.sub(" VALUE", "\n".join(quiet))


def same_but_for_rounding(a, b):
    a, b = without_noise(a), without_noise(b)
    if NUMBER.sub("N", a) != NUMBER.sub("N", b):
        return False
    pairs = zip(NUMBER.findall(a), NUMBER.findall(b), strict=True)
    return all(
        abs(float(x) - float(y)) <= 1.01 * 10.0 ** -len(x.partition(".")[2]) for x, y in pairs
    )
