"""The inputs of the reductions by an operator, which wrong identities and signed comparisons must not fit."""

import numpy as np
import pytest

from tests.kernel_space import reference_module, spec_of

SPEC = spec_of("operators")
OPERATORS = {
    "addends": lambda x: np.sum(x, dtype=np.uint32),
    "factors": lambda x: np.multiply.reduce(x, dtype=np.uint32),
    "above": np.min,
    "below": np.max,
    "with_bits": np.bitwise_and.reduce,
    "without_bits": np.bitwise_or.reduce,
    "flips": np.bitwise_xor.reduce,
}


def inputs_at(sizes):
    return reference_module(SPEC).inputs(sizes, np.random.default_rng(0))


@pytest.mark.parametrize("sizes", (*SPEC.verify_sizes, {"n": 4096}), ids=str)
def test_every_operator_has_the_same_result(sizes):
    arrays = inputs_at(sizes)
    assert {name: combined(arrays[name]) for name, combined in OPERATORS.items()} == dict.fromkeys(
        OPERATORS, arrays["wanted"][0]
    )


def test_results_are_the_largest_and_the_smallest_number_at_some_sizes():
    found = {int(inputs_at(sizes)["wanted"][0]) for sizes in SPEC.verify_sizes}
    assert {0, 2**32 - 1} < found
