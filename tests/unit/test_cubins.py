"""What a binary has: kernels of C, of C++, and of Triton."""

import pytest

from autotune.compilers.cubins import Cubins
from autotune.compilers.triton_binary import TritonBinary, pack
from autotune.core.trials import Binary
from autotune.errors import LaunchError


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


def test_an_entry_that_triton_did_not_compile_has_no_resources():
    cubins = Cubins(Binary(pack({"f('i32')": TritonBinary("f", 8, 0, 1, (0,), 0, b"cubin")}), "", "", 0.0))
    with pytest.raises(LaunchError, match=r"not compiled for f\('i64'\); it has f\('i32'\)"):
        cubins.resources("f('i64')")
