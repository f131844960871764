"""Element types that numpy or C lack: bfloat16, complex numbers, truth values and structures."""

import numpy as np
import pytest

from autotune.core.c_types import is_dtype, struct_fields
from autotune.devices.array_compare import ArrayComparison, Tolerance, compared_on_host
from autotune.devices.element_types import numpy_dtype, scalar_of

KERNEL = """\
import ml_dtypes

def double(grid, block, x, y, n):
    x, y = x.view("{dtype}")[:n], y.view("{dtype}")[:n]
    y[:] = {formula}
    return 1.0 + A
"""
REFERENCE = "def reference(inputs, sizes):\n    x = inputs['x']\n    return {{'y': {formula}}}\n"
FORMULAS = {
    "bfloat16": ("x * 3 + 1", "uniform: [-1, 1]", "x.astype('float64') * 3 + 1"),
    "complex64": ("x * 1j + 1", "normal: [0, 1]", "x * 1j + 1"),
    "complex128": ("x.conj()", "normal: [0, 1]", "x.conj()"),
    "bool": ("~x", "integers: [0, 1]", "~x"),
}


def written(folder, dtype, formula):
    folder.write(KERNEL.format(dtype=dtype, formula=formula))
    _, fill, expected = FORMULAS[dtype]
    (folder.path / "reference.py").write_text(REFERENCE.format(formula=expected))
    folder.edit("dtypes: [int32]", f"dtypes: [{dtype}]")
    folder.edit(
        "x, dtype: int32, shape: [n], role: in, fill: {integers: [-100, 100]}",
        f"x, dtype: DTYPE, shape: [n], role: in, fill: {{{fill}}}",
    )
    folder.edit("y, dtype: int32", "y, dtype: DTYPE")
    folder.edit("verify: {rtol: 0, atol: 0}", "verify: {rtol: 0.01, atol: 0.01}")


@pytest.mark.parametrize("dtype", FORMULAS)
def test_a_search_verifies_the_type_and_the_result_is_served(folder, dtype):
    written(folder, dtype, FORMULAS[dtype][0])
    assert folder.search("--budget", "5")["counts"] == {"ok": 5}
    done = folder.run("best", "double", "--device", "fake", "--json")
    assert done.returncode == 0 and f"DTYPE_{dtype.upper()}" in done.stdout


@pytest.mark.parametrize("dtype", FORMULAS)
def test_a_wrong_result_of_the_type_is_told_with_place_and_value(folder, dtype):
    written(folder, dtype, FORMULAS[dtype][0])
    folder.write(
        KERNEL.format(dtype=dtype, formula=FORMULAS[dtype][0]).replace("return", "y[n // 2] = 77; return")
    )
    done = folder.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 1
    assert "wrong result: y[" in done.stderr.replace("_", " ") and ", expected " in done.stderr


def test_the_names_of_structures_are_read_back_and_others_refused():
    assert struct_fields("struct(x:float32,cells:int32[4])") == (("x", "float32", 0), ("cells", "int32", 4))
    for text in (
        "struct()",
        "struct(x)",
        "struct(x:float)",
        "struct(x:int8,x:int8)",
        "struct(x:int8",
        "int",
        3,
    ):
        assert not is_dtype(text)
    assert is_dtype("complex64") and numpy_dtype("struct(a:int8,b:float64)").itemsize == 16


def test_structures_are_compared_by_field_and_their_padding_is_not():
    name = "struct(a:int8,x:float32)"
    expected = np.zeros(4, numpy_dtype(name))
    expected["x"] = 1
    actual = expected.copy()
    actual.view(np.uint8)[1] = 99  # padding
    comparison = ArrayComparison(None, None, "uint8", 32, Tolerance(1e-3), struct=name)
    pair = [array.view(np.uint8) for array in (actual, expected)]
    assert compared_on_host(*pair, comparison) is None
    actual["x"][2] = 1.01
    actual["a"][3] = 1
    assert compared_on_host(*pair, comparison) == (16, 2)


def test_scalars_are_bytes_as_a_kernel_takes_them():
    assert scalar_of("bfloat16", 1.5).tobytes() == b"\xc0\x3f"
    assert scalar_of("complex64", (1, 2)) == np.complex64(1 + 2j) and scalar_of("complex64", 1) == 1
    assert scalar_of("bool", 1).tobytes() == b"\1"
    assert scalar_of("struct(a:int8,b:int32)", (1, 2)).tobytes()[4:] == b"\2\0\0\0"
