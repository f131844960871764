"""The divergence space: its ladder, that each way to an element reaches all of them, and its reference."""

import numpy as np

from tests.kernel_space import bound, reference_of, spec_of

SPEC = spec_of("divergence")


def test_granularities_of_a_thread_and_of_a_warp_take_every_branch_and_index():
    for name, values in (("BRANCH", 3), ("INDEX", 3)):
        seen = {(one["GRANULARITY"], one[name]) for one in bound(SPEC) if one["GRANULARITY"] in (1, 32)}
        assert len(seen) == 2 * values


def test_the_shift_is_the_granularity():
    space = bound(SPEC)
    (text,) = [argument.value for argument in SPEC.arguments if argument.name == "shift"]
    assert text == "floor(log2(GRANULARITY))"
    assert {config["GRANULARITY"] for config in space} == {2**shift for shift in range(7)}


def test_the_reference_wraps_and_goes_both_ways():
    x = np.array([2**31, 2**31, 5, 5], np.uint32)
    even, odd = 5 * 5 + 3, (5 ^ (5 >> 7)) * 5 + 1
    found = reference_of(SPEC)({"x": x}, {"n": 4, "steps": 1})["y"].tolist()
    assert found == [3, ((2**31 ^ 2**24) * 5 + 1) % 2**32, even, odd]
