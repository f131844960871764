"""Bar charts: well-formed SVG whose lengths say what the numbers say."""

import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.report.plot import MAX_LINEAR_SPREAD, Bar, bar_chart

SVG = "{http://www.w3.org/2000/svg}"
TIMES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=12)


def drawn(times_ms, title="ladder", label="step"):
    bars = [Bar(label, time_ms, f"{time_ms:.4g} ms") for time_ms in times_ms]
    return ElementTree.fromstring(bar_chart(title, "ms", bars))


def widths(image):
    return [float(bar.get("width")) for bar in image.iter(f"{SVG}rect")]


def texts(image):
    return [text.text for text in image.iter(f"{SVG}text")]


@given(TIMES)
def test_bars_are_ordered_as_the_values_and_stay_inside_the_image(times_ms):
    image = drawn(times_ms)
    found = widths(image)
    assert len(found) == len(times_ms) and min(found) > 0
    for (short_ms, short), (long_ms, long) in pairwise(sorted(zip(times_ms, found, strict=True))):
        assert short <= long + 0.1, (short_ms, long_ms)
    width, height = float(image.get("width")), float(image.get("height"))
    assert all(float(bar.get("x")) + float(bar.get("width")) <= width for bar in image.iter(f"{SVG}rect"))
    assert all(0 <= float(text.get("y")) <= height for text in image.iter(f"{SVG}text"))


@given(TIMES)
def test_the_axis_has_a_few_marks_and_is_logarithmic_for_a_wide_spread_only(times_ms):
    image = drawn(times_ms)
    wide = max(times_ms) > MAX_LINEAR_SPREAD * min(times_ms)
    assert ("ms, logarithmic" in texts(image)) == wide
    assert 2 <= len(list(image.iter(f"{SVG}line"))) <= 14


def test_lengths_are_proportional_on_a_linear_axis_and_decades_are_equal_on_a_logarithmic_one():
    one, two = widths(drawn([1.0, 2.0]))
    assert two == pytest.approx(2 * one, abs=0.2)
    lengths = widths(drawn([1.0, 10.0, 100.0]))
    assert lengths[2] - lengths[1] == pytest.approx(lengths[1] - lengths[0], abs=0.2)


def test_text_is_escaped_and_the_best_stands_out():
    image = ElementTree.fromstring(bar_chart("a < b & c", "ms", [Bar('"<x>"', 1, "1 ms", strong=True)]))
    assert "a < b & c" in texts(image) and '"<x>"' in texts(image)
    assert [bar.get("class") for bar in image.iter(f"{SVG}rect")] == ["strong"]
