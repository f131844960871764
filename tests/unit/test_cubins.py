"""What a binary has: kernels of C, of C++, and of Triton."""

import pytest

from autotune.compilers.cubins import Cubins
from autotune.core.trials import Binary


@pytest.mark.parametrize(
    ("names", "has"),
    [
        (("sum",), True),  # maybe in C
        (("sum", "add<4>"), True),
        (("add<8>",), False),
        (("outer::filter",), False),
        ((), True),
    ],
)
def test_a_name_of_c_plus_plus_is_there_if_it_was_looked_up(names, has):
    binary = Binary(b"", "", "", 0.0, symbols={"add<4>": "_Z3addILi4EEvv"})
    assert Cubins(binary).has(names) is has
