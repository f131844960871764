"""Which configuration of other devices is taken, and what it is expected to cost."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from math import inf, log

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from autotune.core.records import Config, Tier, distance
from autotune.hardware.names import Traits
from autotune.serving.portability import (
    LOOSER,
    MIN_TOTAL,
    KnownDevice,
    Slowdown,
    across_devices,
    across_sizes,
    foretold,
    of_default,
    ranked,
    scopes,
)
from tests.cache_example import entry

RECORDED = os.environ.get("AUTOTUNE_RECORDED")

A, B, C, D = (Config({"BLOCK": block}) for block in (32, 64, 128, 256))
NVIDIA_90, NVIDIA_80, AMD = (
    Traits("gpu", *rest) for rest in (("nvidia", "sm_90"), ("nvidia", "sm_80"), ("amd", "gfx90a"))
)


def known(folder: str, traits: Traits, best: Config, /, n: int = 64, **others: float) -> KnownDevice:
    """A device with one result whose best takes 1 ms; others by letter, in ms."""
    letters = {"A": A, "B": B, "C": C, "D": D}
    measured = tuple((letters[letter], time_ms) for letter, time_ms in others.items())
    found = replace(entry(n), config=best, time_ms=1.0, default_time_ms=4.0, measured=measured)
    return KnownDevice(folder, traits, (found,))


def test_the_least_worst_goes_first_and_not_the_least_sum():
    columns = [{A: 1.0, B: 1.4, C: 1.5}, {A: 1.6, B: 1.5, C: 1.0}, {A: 1.0, B: 1.45, C: 1.0}]
    assert list(ranked(columns)) == [C, B, A]


def test_what_is_not_known_of_a_device_counts_as_the_slowest_that_is():
    assert list(ranked([{A: 1.0, B: 3.0}, {C: 1.0, B: 2.0, D: 1.5}])) == [A, B, C, D]
    assert next(ranked([{A: 1.0, B: 1.2, D: 4.0}, {C: 1.0, B: 1.3, D: 4.0}])) is B
    assert next(ranked([{A: 1.0, B: 13.0}, {B: 1.0, A: 1.1}, {A: 1.0, C: 1.2}])) is A


def test_equals_are_told_apart_by_gaps_then_by_the_sum_then_by_place():
    assert list(ranked([{A: 1.0, B: 2.0}, {C: 1.0, B: 2.0}])) == [B, A, C]
    assert list(ranked([{A: 2.0, B: 2.0}, {A: 1.5, B: 1.0}])) == [B, A]
    assert list(ranked([{A: 1.0, B: 1.0}])) == [A, B]


@given(
    st.lists(
        st.dictionaries(st.sampled_from([A, B, C, D]), st.floats(1, 9), min_size=1), min_size=1, max_size=4
    )
)
def test_the_order_is_that_of_the_table_with_its_gaps_filled(columns):
    def row(config):
        return [column.get(config, max(column.values())) for column in columns]

    order = list(ranked(columns))
    assert {*order} == {config for column in columns for config in column}
    worst = [max(row(config)) for config in order]
    assert worst == sorted(worst)


def test_the_closest_tier_with_a_device_comes_first():
    devices = [known("h", NVIDIA_90, A), known("a", NVIDIA_80, B), known("m", AMD, C)]

    def names(traits):
        return [(tier, [one.folder for one in scope]) for tier, scope in scopes(traits, devices)]

    everyone = (Tier.PORTABLE, ["h", "a", "m"])
    assert names(NVIDIA_90) == [
        (Tier.SAME_ARCHITECTURE, ["h"]),
        (Tier.SAME_VENDOR, ["h", "a"]),
        everyone,
    ]
    assert names(Traits("gpu", "amd", "gfx1100")) == [(Tier.SAME_VENDOR, ["m"]), everyone]
    assert names(Traits("gpu", "intel", None)) == [everyone]
    devices = [known("x", Traits("gpu", "", ""), A), known("y", Traits("gpu", None, None), A)]
    for nothing in ("", None):
        assert names(Traits("gpu", nothing, nothing)) == [(Tier.PORTABLE, ["x", "y"])]
    devices = [known("h", NVIDIA_90, A), known("a", NVIDIA_80, B), known("m", AMD, C)]
    assert names(Traits()) == [everyone]
    assert names(Traits("cpu", "amd", "x86_64")) == []


def test_each_device_is_left_out_once():
    devices = [
        known("h", NVIDIA_90, A, B=1.5),
        known("a", NVIDIA_80, B, A=2.0, C=5.0),
        known("m", AMD, C, D=1.25),
    ]
    assert across_devices(devices, {"n": 64}) == [
        Slowdown(1.5, True, Tier.SAME_VENDOR),  # the best of the other of its vendor
        Slowdown(2.0, True, Tier.SAME_VENDOR),
        Slowdown(
            1.25, False, Tier.PORTABLE
        ),  # neither's choice was run there: at least as slow as the slowest
    ]
    assert across_devices(devices[:1], {"n": 64}) == []


def test_each_size_is_left_out_once_and_a_longer_way_costs_more():
    small = replace(entry(64), config=A, time_ms=1.0, measured=((B, 1.5),))
    large = replace(entry(1024), config=B, time_ms=1.0, measured=((C, 3.0),))
    near = across_sizes([small, large], 1.0)
    assert near == [Slowdown(1.5, True, Tier.NEAREST_SIZE), Slowdown(3.0, False, Tier.NEAREST_SIZE)]
    far = across_sizes([small, large], 8.0)
    assert [one.factor for one in far] == pytest.approx([1.5**2, 3.0**2])
    assert [one.factor for one in across_sizes([small, large], 999.0)] == pytest.approx([1.5**4, 3.0**4])
    assert across_sizes([small], 1.0) == []
    assert across_sizes([small, replace(small, config=D)], 1.0) == []  # as a merge by hand may leave


def test_the_default_costs_what_it_cost_everywhere():
    devices = [known("h", NVIDIA_90, A), known("m", AMD, C)]
    assert of_default(devices, {"n": 64}) == [Slowdown(4.0, True, Tier.DEFAULT)] * 2


def test_nothing_exact_foretells_nothing():
    assert foretold([], Tier.PORTABLE) == (None, None)
    assert foretold([Slowdown(2.0, False, Tier.PORTABLE)], Tier.PORTABLE) == (None, None)


def test_the_tier_s_own_cost_decides_then_looser_ones_then_closer_ones():
    own, looser, closer = (
        Slowdown(factor, True, tier)
        for factor, tier in ((1.2, Tier.SAME_VENDOR), (5.0, Tier.PORTABLE), (1.1, Tier.SAME_ARCHITECTURE))
    )
    own = own._replace(factor=1.05)
    alone = foretold([own], Tier.SAME_VENDOR)[1]
    assert log(alone) == pytest.approx((log(1.05) + log(MIN_TOTAL)) * 9)
    assert foretold([own, looser, closer], Tier.SAME_VENDOR)[1] == alone
    assert foretold([looser, closer], Tier.SAME_VENDOR)[1] == 5.0
    assert foretold([own], Tier.PORTABLE)[1] == pytest.approx(alone**LOOSER)


def test_the_expected_slowdown_is_a_median_which_few_results_give():
    seen = [Slowdown(4.8, True, Tier.PORTABLE)] * 2
    expected, most = foretold(seen, Tier.PORTABLE)
    assert 4.8 < expected**2 < 4.8**2 and most is None
    looser = [Slowdown(factor, True, Tier.PORTABLE) for factor in (1.1, 1.2, 5.0)]
    assert foretold(looser, Tier.SAME_VENDOR) == (1.2, 5.0)


def test_a_wild_bound_from_two_results_is_unknown():
    seen = [Slowdown(4.8, True, Tier.PORTABLE)] * 2
    assert foretold(seen, Tier.PORTABLE)[1] is None
    assert foretold([Slowdown(1.2, True, Tier.PORTABLE)] * 2, Tier.PORTABLE)[1] < 4


@given(st.lists(st.floats(1, 20), min_size=1, max_size=12), st.floats(1, 20))
def test_a_predicted_slowdown_is_at_least_the_mean_and_grows_with_what_was_seen(factors, more):
    seen = [Slowdown(factor, True, Tier.PORTABLE) for factor in factors]
    predicted = foretold(seen, Tier.PORTABLE)[1]
    assume(predicted is not None)
    assert log(predicted) >= sum(map(log, factors)) / len(factors)
    worse = [Slowdown(factor * more, True, Tier.PORTABLE) for factor in factors]
    assert (foretold(worse, Tier.PORTABLE)[1] or inf) >= predicted
    unsure = [*seen, Slowdown(more, False, Tier.PORTABLE)]
    assert (foretold(unsure, Tier.PORTABLE)[1] or inf) >= predicted


def test_the_predicted_slowdown_holds_nine_times_in_ten_and_the_expected_one_in_half():
    """Of slowdowns whose logarithms are exponential, whatever their scale and however few were seen."""
    import random

    numbers = random.Random(7)
    for count in (2, 3, 8):
        held = halves = 0
        for _ in range(2000):
            *seen, truth = (2 ** numbers.expovariate(1.0) for _ in range(count + 1))
            expected, most = foretold([Slowdown(x, True, Tier.PORTABLE) for x in seen], Tier.PORTABLE)
            held += truth <= (most or inf)  # unknown promises nothing
            halves += truth <= expected
        assert 0.89 <= held / 2000 <= 0.95 and 0.48 <= halves / 2000 <= 0.58  # MIN_TOTAL is added


def test_every_dimension_counts():
    assert distance({"m": 8, "n": 8}, {"m": 1, "n": 64}) == pytest.approx(18**0.5)


@pytest.mark.skipif(RECORDED is None, reason="AUTOTUNE_RECORDED names no folder of recordings")
def test_the_tiers_beat_other_static_rules_in_the_worst_case_and_foretell_it(root):
    done = subprocess.run(
        [sys.executable, root / "benchmarks/carry_over.py", RECORDED, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    for kernel, tiers in found["tiers of best_config"].items():
        worst = min(outcome["share"] for outcome in tiers.values())
        for rule in ("fastest foreign record", "least sum of relative times"):
            assert worst > min(outcome["share"] for outcome in found[rule][kernel].values())
    outcomes = [outcome for tiers in found["tiers of best_config"].values() for outcome in tiers.values()]
    held = sum(outcome["share"] * (outcome["slowdown_at_most"] or inf) >= 1 for outcome in outcomes)
    assert held >= 0.9 * len(outcomes)
