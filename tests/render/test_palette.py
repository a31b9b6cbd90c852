import numpy as np
import pytest

from gptscope.render.palette import DIVERGING, SEQUENTIAL, colour, ink

SCALES = {"sequential": SEQUENTIAL, "diverging": DIVERGING}


def luminance(rgb):  # WCAG 2.2, relative luminance
    share = np.array(rgb) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a, b):
    dark, light = sorted(map(luminance, (a, b)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("stops", SCALES.values(), ids=SCALES)
def test_every_stop_has_its_colour(stops):
    assert [colour(at, stops) for at, _ in stops] == [rgb for _, rgb in stops]


@pytest.mark.parametrize("stops", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("beyond", [1.5, -1.5])
def test_what_is_off_the_scale_has_the_colour_of_its_end(stops, beyond):
    end = stops[-1 if beyond > 0 else 0]
    assert colour(beyond, stops) == end[1]


def test_between_two_stops_colours_are_mixed():
    stops = ((0.0, (0, 0, 100)), (1.0, (100, 200, 0)))
    assert colour(0.25, stops) == (25, 50, 75)


def test_one_scale_runs_from_nothing_up_and_one_to_both_sides():
    assert (SEQUENTIAL[0][0], SEQUENTIAL[-1][0]) == (0, 1)
    assert (DIVERGING[0][0], DIVERGING[-1][0]) == (-1, 1)


def test_more_is_lighter():
    for stops, signs in ((SEQUENTIAL, [1]), (DIVERGING, [1, -1])):
        for sign in signs:
            lights = [luminance(colour(sign * i / 10, stops)) for i in range(11)]
            assert lights == sorted(lights)


@pytest.mark.parametrize("stops", SCALES.values(), ids=SCALES)
def test_ink_can_be_read_on_every_colour(stops):
    backs = [colour(share, stops) for share in np.linspace(stops[0][0], 1, 101)]
    poor = [back for back in backs if contrast(ink(back), back) < 4.5]  # WCAG 2.2, level AA
    assert poor == []


@pytest.mark.parametrize(("back", "text"), [((0, 0, 0), (255,) * 3), ((255,) * 3, (0, 0, 0))])
def test_ink_is_black_or_white(back, text):
    assert ink(back) == text
