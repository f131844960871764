"""Element types that numpy or C lack: bfloat16, complex numbers, truth values and structures."""

import numpy as np
import pytest

from autotune import best_config
from autotune.core.c_types import is_dtype, struct_fields
from autotune.devices.array_compare import ArrayComparison, Tolerance, compared_on_host
from autotune.devices.base import Device
from autotune.devices.cuda import CudaDevice
from autotune.devices.element_types import numpy_dtype, scalar_of
from autotune.errors import SpaceError
from autotune.runtime.call_plan import CallArguments, CallPlanner
from autotune.runtime.call_signature import CallSignature
from autotune.runtime.prepared import View
from autotune.space import load_space

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
def test_a_run_verifies_the_type(folder, dtype):
    written(folder, dtype, FORMULAS[dtype][0])
    done = folder.run("run", "double.yaml", "--device", "fake", "--json")
    assert done.returncode == 0 and '"status": "ok"' in done.stdout, done.stderr


def test_a_result_for_the_type_is_served(folder):
    written(folder, "bfloat16", FORMULAS["bfloat16"][0])
    assert folder.search("--budget", "2")["counts"] == {"ok": 2}
    done = folder.run("best", "double", "--device", "fake", "--json")
    assert done.returncode == 0 and "DTYPE_BFLOAT16" in done.stdout


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64"])
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


STRUCT_KERNEL = """\
import numpy

BODY = numpy.dtype([("at", "f4", (3,)), ("kind", "i1"), ("mass", "f8")], align=True)

def double(grid, block, x, y, step):
    x, y = x.view(BODY), y.view(BODY)
    for name in BODY.names:
        y[name] = x[name]
    y["at"] += step["by"] * A
    if A == 3:
        y["kind"][4:5] = 0
    return 1.0 + B
"""
STRUCT_REFERENCE = """\
import numpy as np

BODY = np.dtype([("at", "f4", (3,)), ("kind", "i1"), ("mass", "f8")], align=True)

def inputs(sizes, rng):
    bodies = np.zeros(sizes["n"], BODY)
    bodies["at"], bodies["kind"], bodies["mass"] = rng.random((sizes["n"], 3)), 7, rng.random(sizes["n"])
    return {"x": bodies}

def reference(inputs, sizes):
    moved = inputs["x"].copy()
    moved["at"] += np.float32(0.5 * sizes["n"])
    return {"y": moved}
"""
FIELDS = "fields: {at: [float32, 3], kind: int8, mass: float64}"


@pytest.fixture
def bodies(folder):
    folder.write(STRUCT_KERNEL)
    (folder.path / "reference.py").write_text(STRUCT_REFERENCE)
    folder.edit("A: [1, 2, 3, 4, 5, 6]", "A: [1, 2, 3]")
    folder.edit("B: [0, 1, 2]", "B: [0]")
    folder.edit(
        "x, dtype: int32, shape: [n], role: in, fill: {integers: [-100, 100]}",
        f"x, {FIELDS}, shape: [n], role: in, fill: inputs",
    )
    folder.edit("y, dtype: int32", f"y, {FIELDS}")
    folder.edit(
        "n, dtype: int32, value: n",
        "step, fields: {by: float32, unused: int64}, value: {by: 0.5 * n / A, unused: -1}",
    )
    folder.edit("[x, y, n]", "[x, y, step]")
    return folder


def test_structures_are_arguments_by_value_and_elements_of_arrays(bodies):
    result = bodies.search()
    assert result["counts"] == {"ok": 2, "wrong_result": 1}
    wrong = bodies.run("show", "double", "--status", "wrong_result", "--json").stdout
    assert "y[4] is" in wrong and "1 of 17 elements differ" in wrong


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kind: int8", "kind: char", "arguments[0].fields.kind: unknown value 'char'"),
        ("[float32, 3]", "[float32, 0]", "arguments[0].fields.at[1]: expected a whole number from 1 to 9999"),
        (
            "fill: inputs",
            "fill: {uniform: [0, 1]}",
            "uniform fills numbers: an array of structures",
        ),
        ("{by: 0.5 * n / A, unused: -1}", "{by: 1}", "arguments[2].value: missing key: unused"),
        (
            "{by: float32, unused",
            "{by: [float32, 2], unused",
            "by is an array: a structure that",
        ),
    ],
)
def test_a_mistake_in_a_structure_is_named(bodies, old, new, message):
    bodies.edit(old, new)
    with pytest.raises(SpaceError) as error:
        load_space(bodies.space)
    assert message in str(error.value)


def test_an_argument_may_point_into_another(folder):
    folder.write(
        "def double(grid, block, left, right, y, n):\n"
        '    y.view("int32")[:n] = left.view("int32")[:n] + right.view("int32")[:n]\n'
        "    return 1.0 + A + B\n"
    )
    (folder.path / "reference.py").write_text(
        "def reference(inputs, sizes):\n    x, n = inputs['x'], sizes['n']\n    return {'y': x[:n] + x[n:]}\n"
    )
    folder.edit("shape: [n], role: in", "shape: [2 * n], role: in")
    folder.edit("  - {name: y", "  - {name: right, dtype: int32, of: x, offset: n}\n  - {name: y")
    folder.edit("arguments: [x, y, n]", "arguments: [x, right, y, n]")
    assert folder.search("--budget", "2")["counts"] == {"ok": 2}
    cached = (folder.path / "cache/fake-gpu/double.json").read_text()
    assert '"offset": "n"' in cached and '"of": "x"' in cached
    done = folder.run("best", "double", "--device", "fake")
    assert done.returncode == 0, done.stderr
    folder.edit("offset: n", "offset: 3 * n")
    done = folder.run("search", "double.yaml", "--device", "fake")
    assert (
        done.returncode != 0
        and "argument right: begins" in done.stderr
        and "after the start of x" in done.stderr
    )
    folder.edit("of: x", "of: z")
    assert (
        "arguments[1].of: expected an earlier array, found 'z'" in folder.run("space", "double.yaml").stderr
    )


POINTED_KERNEL = """
from ctypes import c_int32

def double(grid, block, all):
    n, out, x = int(all["n"]), *(int(all[name]) for name in ("out", "x"))
    given = (c_int32 * n).from_address(x)
    found = (c_int32 * (n + (A == 2))).from_address(out)
    for place in range(n + (A == 2)):
        found[place] = 2 * given[place] if place < n and A != 3 else 1
    return 1.0 + A
"""


@pytest.fixture
def pointed(folder):
    """A kernel that gets all arrays by a structure, and is wrong with A=3, and beyond the end with A=2."""
    folder.write(POINTED_KERNEL)
    folder.edit("A: [1, 2, 3, 4, 5, 6]", "A: [1, 2, 3]")
    folder.edit("B: [0, 1, 2]", "B: [0]")
    folder.edit(
        "{name: n, dtype: int32, value: n}",
        "{name: all, fields: {n: int32, out: pointer, unused: int8, x: pointer}, "
        "value: {n: n, out: y, unused: 1, x: x}}",
    )
    folder.edit("[x, y, n]", "[all]")
    return folder


def test_pointers_in_a_structure_lead_to_arrays_which_are_verified_with_their_guard_zones(pointed):
    assert pointed.search()["counts"] == {"ok": 1, "wrong_result": 1, "out_of_bounds": 1}
    cached = (pointed.path / "cache/fake-gpu/double.json").read_text()
    assert '"struct(n:int32,out:pointer,unused:int8,x:pointer)"' in cached


def test_a_pointer_in_a_structure_may_lead_to_a_view(pointed):
    pointed.edit("shape: [n], role: in", "shape: [2 * n], role: in")
    pointed.edit("  - {name: y", "  - {name: right, dtype: int32, of: x, offset: n}\n  - {name: y")
    pointed.edit("x: x}", "x: right}")
    (pointed.path / "reference.py").write_text(
        "def reference(inputs, sizes):\n    return {'y': 2 * inputs['x'][sizes['n'] :]}\n"
    )
    assert pointed.search("--budget", "1")["counts"] == {"ok": 1}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("out: y", "out: z", "arguments[2].value.out: expected an earlier array or view, found 'z'"),
        ("x: x}", "x: n}", "arguments[2].value.x: expected an earlier array or view, found 'n'"),
        ("n: int32, out", "n: [pointer, 2], out", "n is an array: a structure that"),
        ("dialect: python", "dialect: opencl", "fields.out: only a structure that is passed by value to a "),
        (
            "y, dtype: int32",
            "y, fields: {at: pointer}",
            "fields.at: only a structure that is passed by value",
        ),
    ],
)
def test_a_pointer_that_nothing_can_fill_is_refused(pointed, old, new, message):
    pointed.edit(old, new)
    with pytest.raises(SpaceError) as error:
        load_space(pointed.space)
    assert message in str(error.value)


def test_a_call_gives_the_arrays_to_which_a_structure_points(pointed):
    pointed.search("--budget", "1")
    best = best_config("double", device="fake-gpu", cache=pointed.path / "cache", n=100)
    views = {name: View(None, "int32", (100,), 400, None) for name in "xy"}
    given = CallArguments(CallSignature("double", best.record), ("x", "y"), {}, views, None, {}, {})
    plan = CallPlanner("double", best, {"n": 100}).plan(given)
    assert (plan.given, plan.hidden) == (("x", "y"), ())
    assert plan.pointers == (("all", 8, "y"), ("all", 24, "x"))
    assert plan.scalars["all"].item() == (100, 0, 1, 0)


def test_a_device_of_cuda_has_all_that_the_protocol_names():
    """It inherits from no protocol, so mypy sees a gap only where such a device is passed."""
    names = {name for name, member in vars(Device).items() if callable(member) and not name.startswith("_")}
    assert "address" in names
    assert [name for name in sorted(names) if not hasattr(CudaDevice, name)] == []
