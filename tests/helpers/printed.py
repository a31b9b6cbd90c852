"""Printed numbers of two machines, which may round the last digit differently."""

import re

NUMBER = re.compile(r"-?\d+\.\d+")


def same_but_for_rounding(a, b):
    if NUMBER.sub("N", a) != NUMBER.sub("N", b):
        return False
    pairs = zip(NUMBER.findall(a), NUMBER.findall(b), strict=True)
    return all(
        abs(float(x) - float(y)) <= 1.01 * 10.0 ** -len(x.partition(".")[2]) for x, y in pairs
    )
