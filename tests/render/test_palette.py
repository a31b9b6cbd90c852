import itertools

import numpy as np
import pytest

from gptscope.render.palette import (
    DIVERGING,
    DIVERGING_ON_LIGHT,
    SCALES,
    SEQUENTIAL,
    SEQUENTIAL_ON_LIGHT,
    colour,
    ink,
    ink_on,
    numbered,
    scale_for,
)

STOPS = [SEQUENTIAL, DIVERGING, SEQUENTIAL_ON_LIGHT, DIVERGING_ON_LIGHT]
NAMES = ["sequential", "diverging", "sequential on light", "diverging on light"]
WHITE, BLACK = (255, 255, 255), (0, 0, 0)
# What the 16 colours look like on the console of a PC, and in xterm.
VGA = [(170 * (i & 1), 170 * (i >> 1 & 1), 170 * (i >> 2 & 1)) for i in range(8)]
VGA[3] = (170, 85, 0)
VGA += [(85 + 170 * (i & 1), 85 + 170 * (i >> 1 & 1), 85 + 170 * (i >> 2 & 1)) for i in range(8)]
XTERM = [(205 * (i & 1), 205 * (i >> 1 & 1), 205 * (i >> 2 & 1)) for i in range(8)]
XTERM[4], XTERM[7] = (0, 0, 238), (229, 229, 229)
XTERM += [(255 * (i & 1), 255 * (i >> 1 & 1), 255 * (i >> 2 & 1)) for i in range(8)]
XTERM[8], XTERM[12] = (127, 127, 127), (92, 92, 255)
THEMES = {"vga": VGA, "xterm": XTERM}
# Machado, Oliveira and Fernandes 2009, for linear RGB, severity 1.
BLIND = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)

every_scale = pytest.mark.parametrize("stops", STOPS, ids=NAMES)
every_key = pytest.mark.parametrize(
    "key", SCALES, ids=lambda key: f"{key[0]}{' on light' * key[1]}"
)


def linear(rgb):
    share = np.array(rgb) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def luminance(rgb):  # WCAG 2.2, relative luminance
    return float(linear(rgb) @ [0.2126, 0.7152, 0.0722])


def contrast(a, b):
    dark, light = sorted(map(luminance, (a, b)))
    return (light + 0.05) / (dark + 0.05)


def lab(rgb, seen_by):
    """CIELAB of a colour as someone sees it."""
    matrix = BLIND.get(seen_by, np.eye(3))
    xyz = TO_XYZ @ np.clip(matrix @ linear(rgb), 0, 1) / TO_XYZ.sum(1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def apart(a, b, seen_by):
    return float(np.linalg.norm(lab(a, seen_by) - lab(b, seen_by)))


def outward(steps, low):
    """The steps from nothing to the strongest: one way, or two."""
    middle = len(steps) // 2
    return [steps] if low == 0 else [steps[middle:], steps[middle::-1]]


def is_ordered(lights, *, light):
    pairs = itertools.pairwise(lights)
    return all(a > b for a, b in pairs) if light else all(a < b for a, b in pairs)


@every_scale
def test_every_stop_has_its_colour(stops):
    assert [colour(at, stops) for at, _ in stops] == [rgb for _, rgb in stops]


@every_scale
@pytest.mark.parametrize("beyond", [1.5, -1.5, np.inf, -np.inf])
def test_what_is_off_the_scale_has_the_colour_of_its_end(stops, beyond):
    end = stops[-1 if beyond > 0 else 0]
    assert colour(beyond, stops) == end[1]


def test_between_two_stops_colours_are_mixed():
    stops = ((0.0, (0, 0, 100)), (1.0, (100, 200, 0)))
    assert colour(0.25, stops) == (25, 50, 75)


@pytest.mark.parametrize(
    ("kind", "low"),
    [("probability", 0), ("length", 0), ("count", 0), ("signed", -1), ("vector", -1)],
)
@pytest.mark.parametrize("light", [False, True])
def test_each_kind_has_its_scale(kind, low, light):
    scale = scale_for(kind, light=light)
    assert scale.low == low
    assert scale is SCALES["diverging" if low else "sequential", light]


@every_key
def test_more_is_farther_from_the_background(key):
    scale = SCALES[key]
    for sign in [1, -1] if scale.low else [1]:
        lights = [luminance(colour(sign * i / 20, scale.stops)) for i in range(21)]
        assert is_ordered(lights, light=key[1])


@every_key
def test_next_to_nothing_looks_like_the_background(key):
    back = WHITE if key[1] else BLACK
    assert contrast(colour(0, SCALES[key].stops), back) < 1.5


@every_scale
def test_ink_can_be_read_on_every_colour(stops):
    backs = [colour(share, stops) for share in np.linspace(stops[0][0], 1, 501)]
    poor = [back for back in backs if contrast(ink(back), back) < 4.5]  # WCAG 2.2, level AA
    assert poor == []


@pytest.mark.parametrize(("back", "text"), [(BLACK, WHITE), (WHITE, BLACK)])
def test_ink_is_black_or_white(back, text):
    assert ink(back) == text


# Few colours


@pytest.mark.parametrize(
    ("number", "rgb"),
    [
        (16, BLACK),
        (231, WHITE),
        (53, (95, 0, 95)),
        (110, (135, 175, 215)),
        (232, (8, 8, 8)),
        (255, (238, 238, 238)),
    ],
)
def test_a_number_has_the_colour_that_xterm_gives_it(number, rgb):
    assert numbered(number) == rgb


@every_key
def test_256_colours_are_in_order_and_can_be_read_on(key):
    scale = SCALES[key]
    for way in outward(scale.many, scale.low):
        assert is_ordered([luminance(numbered(n)) for n in way], light=key[1])
    inks = {16: BLACK, 231: WHITE}
    assert [n for n in scale.many if contrast(inks[ink_on(n)], numbered(n)) < 4.5] == []


@every_key
@pytest.mark.parametrize("theme", THEMES)
def test_16_colours_are_in_order_and_can_be_read_on(key, theme):
    scale, looks = SCALES[key], THEMES[theme]
    for way in outward(scale.few, scale.low):
        known = [luminance(looks[n]) for n in way if n is not None]
        assert is_ordered(known, light=key[1])
        assert len(known) >= 2
    numbers = [n for n in scale.few if n is not None]
    inks = {0: looks[0], 15: looks[15]}
    assert [n for n in numbers if contrast(inks[ink_on(n)], looks[n]) < 4.5] == []


@every_key
@pytest.mark.parametrize("steps", ["many", "few"])
def test_each_step_has_an_equal_share(key, steps):
    scale = SCALES[key]
    numbers = getattr(scale, steps)
    n = len(numbers)
    middles = [scale.low + (i + 0.5) / n * (1 - scale.low) for i in range(n)]
    assert tuple(scale.step(share, numbers) for share in middles) == numbers
    ends = [scale.step(share, numbers) for share in (-np.inf, scale.low, 1, np.inf)]
    assert ends == [numbers[0], numbers[0], numbers[-1], numbers[-1]]


@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize("steps", ["many", "few"])
def test_plus_and_minus_are_equally_far_from_zero(steps, light):
    scale = SCALES["diverging", light]
    numbers = getattr(scale, steps)
    assert len(numbers) % 2 == 1
    for share in np.linspace(0.01, 1, 50):
        up, down = scale.step(share, numbers), scale.step(-share, numbers)
        assert numbers.index(up) + numbers.index(down) == len(numbers) - 1


# Eyes that see fewer colours


@every_key
@pytest.mark.parametrize("eyes", ["all colours", *BLIND])
def test_shares_stay_apart(key, eyes):
    scale = SCALES[key]
    quarters = [colour(share, scale.stops) for share in np.arange(scale.low, 1.01, 0.25)]
    for a, b in itertools.pairwise(quarters):
        assert apart(a, b, eyes) > 10  # of 100; about 2 can just be seen
    assert apart(quarters[0], quarters[-1], eyes) > 50


@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize("eyes", ["all colours", *BLIND])
def test_plus_and_minus_stay_apart(eyes, light):
    stops = SCALES["diverging", light].stops
    for share in (0.25, 0.5, 0.75, 1):
        assert apart(colour(share, stops), colour(-share, stops), eyes) > 20


@pytest.mark.parametrize("eyes", BLIND)
@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize("theme", THEMES)
def test_plus_and_minus_stay_apart_on_few_colours(eyes, light, theme):
    scale = SCALES["diverging", light]
    for low, high in zip(scale.many[:5], scale.many[:5:-1], strict=True):
        assert apart(numbered(low), numbered(high), eyes) > 20
    for low, high in zip(scale.few[:2], scale.few[:2:-1], strict=True):
        assert apart(THEMES[theme][low], THEMES[theme][high], eyes) > 20
