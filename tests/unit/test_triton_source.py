"""Spaces in dialect triton: what is read of a source, and what a launch is compiled for. Needs no Triton."""

import pytest

from autotune.compilers.source_text import read_source
from autotune.errors import InputError, SpaceError
from autotune.hardware.architectures import architecture
from autotune.space import bind, load_space, problem_of

KERNEL = """
import torch
import triton
import triton.language as tl
from helpers import twice as double, other

FACTOR = tl.constexpr(3)
UNUSED = torch.zeros(1)

def host():
    return torch.ones(1)

@triton.jit
def inner(x):
    return x * FACTOR

@triton.autotune(configs=[triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def scale(x, y, n, alpha, BLOCK: tl.constexpr, EVEN: tl.constexpr = False):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, alpha * double(inner(tl.load(x + at, mask=at < n))), mask=at < n)

print(host())
"""
HELPERS = """
import triton
LEFT_OUT = 1
@triton.jit
def twice(x):
    return x + x
"""
SPACE = """
schema: 1
kernel: scale
dialect: triton
source: scale.py
reference: reference.py
sizes: {default: {n: 4096}}
parameters: {BLOCK: [64, 128], num_warps: [1, 2]}
default: {BLOCK: 64, num_warps: 1}
arguments:
  - {name: x, dtype: DTYPE, shape: [n], role: in, fill: {uniform: [0, 1]}}
  - {name: y, dtype: DTYPE, shape: [n], role: out}
  - {name: n, dtype: int32, value: n}
  - {name: alpha, dtype: float32, value: 2.5}
launch:
  - {entry: scale, grid: ["ceil_div(n, BLOCK)"], arguments: [x, y, n, alpha]}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "scale.py").write_text(KERNEL)
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "reference.py").write_text("")
    return tmp_path


def loaded(folder, text=SPACE):
    path = folder / "scale.yaml"
    path.write_text(text)
    return load_space(path)


def bound(folder, **sizes):
    spec, device = loaded(folder), architecture("sm_90").device
    return bind(spec, device, problem_of(spec, device, sizes))


def test_only_what_kernels_use_goes_to_the_compiler(folder):
    text = read_source(folder / "scale.py").text
    assert "torch" not in text and "print" not in text and "autotune" not in text and "LEFT_OUT" not in text
    assert "def inner" in text and "FACTOR = tl.constexpr(3)" in text
    assert text.index("def twice") < text.index("double = twice") < text.index("def scale")
    compile(text, "scale.py", "exec")


def test_the_hash_is_that_of_the_kernel_and_what_it_calls(folder):
    def sha256():
        return read_source(folder / "scale.py").sha256

    before = sha256()
    (folder / "scale.py").write_text(KERNEL.replace("torch.ones(1)", "torch.ones(2)"))
    assert sha256() == before
    (folder / "helpers.py").write_text(HELPERS.replace("x + x", "2 * x"))
    assert sha256() != before


@pytest.mark.parametrize(
    ("sizes", "n"), [({"n": 4096}, "'i32:16', "), ({"n": 4095}, "'i32', "), ({"n": 1}, "'i32=1', ")]
)
def test_an_entry_says_what_the_kernel_is_compiled_for(folder, sizes, n):
    space = bound(folder)
    (step,) = space.launches(space.spec.default, sizes)
    assert step.entry == f"scale('*fp32:16', '*fp32:16', {n}'fp32', BLOCK=64, num_warps=1)"
    assert step.block == (32, 1, 1)


def test_inputs_of_float8_are_for_triton_alone(folder):
    text = SPACE.replace("dtype: DTYPE, shape: [n], role: in", "dtype: float8_e4m3fn, shape: [n], role: in")
    spec, device = loaded(folder, text), architecture("sm_90").device
    space = bind(spec, device, problem_of(spec, device))
    assert space.launches(spec.default)[0].entry.startswith("scale('*fp8e4nv:16', '*fp32:16',")
    for refused in (
        SPACE.replace("dtype: DTYPE, shape: [n], role: out", "dtype: float8_e4m3fn, shape: [n], role: out"),
        text.replace("dialect: triton", "dialect: cuda"),
    ):
        with pytest.raises(SpaceError, match="float8_e4m3fn is for arrays of role in"):
            loaded(folder, refused)


def test_a_type_that_triton_lacks_is_a_failure_of_its_own(folder):
    text = SPACE.replace("dtype: DTYPE, shape: [n], role: in", "dtype: complex64, shape: [n], role: in")
    spec, device = loaded(folder, text), architecture("sm_90").device
    space = bind(spec, device, problem_of(spec, device))
    with pytest.raises(Exception, match="argument x: Triton has no type complex64"):
        space.launches(spec.default)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("arguments: [x, y, n, alpha]", "arguments: [x, y, n]", r"scale takes \(x, y, n, alpha\)"),
        ("entry: scale", "entry: scal", "unknown value 'scal'; did you mean scale"),
        ("BLOCK: [64, 128], ", "SIZE: [1], ", "needs BLOCK as a tl.constexpr"),
        ("arguments: [x, y", "block: [64], arguments: [x, y", "unknown key"),
        ("source: scale.py", "source: reference.py", "no function under @triton.jit"),
        ("dialect: triton", "dialect: triton\ncompiler: nvcc", "compiler: is not for Triton"),
    ],
)
def test_what_does_not_fit_the_source_is_an_error_of_the_space(folder, old, new, reason):
    text = SPACE.replace(old, new)
    if "SIZE" in new:
        text = text.replace("default: {BLOCK: 64", "default: {SIZE: 1").replace("n, BLOCK)", "n, SIZE)")
    with pytest.raises(SpaceError, match=reason):
        loaded(folder, text)


def test_a_source_that_is_no_python_names_its_line(folder):
    (folder / "scale.py").write_text("@triton.jit\ndef scale(:\n")
    with pytest.raises(InputError, match=r"scale.py:2: not Python"):
        loaded(folder)


@pytest.mark.parametrize(
    ("name", "warps", "is_valid"),
    [
        ("gfx942", 16, True),
        ("gfx942", 32, False),
        ("gfx1100", 32, True),
        ("sm_90", 32, True),
        ("sm_90", 64, False),
    ],
)
def test_warps_of_more_threads_than_a_block_can_have_are_not_valid(folder, name, warps, is_valid):
    text = SPACE.replace("num_warps: [1, 2]", "num_warps: [1, 16, 32, 64]")
    spec, device = loaded(folder, text), architecture(name).device
    reasons = bind(spec, device, problem_of(spec, device)).why_invalid({"BLOCK": 64, "num_warps": warps})
    assert (reasons == ()) is is_valid
    if reasons:
        assert f"device.warp_size={device.warp_size}, num_warps={warps}" in reasons[0]
