"""Entries of a launch plan in C++: what may be written, and what becomes of the names in it."""

from dataclasses import replace

import pytest

from autotune.analysis.compile_survey import Settings, survey
from autotune.core.launch_plan import entry_name, is_entry
from autotune.errors import CacheError, SpaceError
from autotune.hardware.architectures import architecture
from autotune.serving.cache_schema import parse_record, record_text
from autotune.space import bind, load_space, problem_of
from autotune.tuning.task import Target
from tests.cache_example import record

VALUES = {"BLOCK_SIZE": 128, "FLAG": True, "T": "double", "DTYPE": "float32", "n": 4096}
SOURCE = """
namespace sparse {
template <typename T, int BLOCK, bool FLAG> __global__ void spmv(T *y, int n)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        y[i] = FLAG ? T(1) : T(2);
}
}
"""
SPACE = """
schema: 1
kernel: spmv
dialect: cuda
source: spmv.cu
reference: spmv.py
sizes:
  default: {n: 1000}
parameters:
  BLOCK_SIZE: [64, 128]
  T: [float, int]
  FLAG: [false, true]
default: {BLOCK_SIZE: 128, T: float, FLAG: false}
arguments:
  - {name: y, dtype: float32, shape: [n], role: out}
  - {name: n, dtype: int32, value: n}
launch:
  - entry: "sparse::spmv<T, BLOCK_SIZE, FLAG>"
    grid: ["ceil_div(n, BLOCK_SIZE)"]
    block: [BLOCK_SIZE]
    arguments: [y, n]
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n", "n"),
        ("spmv<T, BLOCK_SIZE, FLAG>", "spmv<double, 128, true>"),
        ("n<DTYPE *, 2 * n>", "n<float *, 2 * 4096>"),
        ("T::run<T::value, BLOCK_SIZE>", "T::run<T::value, 128>"),
        ("add(DTYPE *, n_type)", "add(float *, n_type)"),
    ],
)
def test_names_in_brackets_get_their_values(text, expected):
    assert is_entry(text)
    assert entry_name(text, VALUES) == expected


@pytest.mark.parametrize(
    "text", ["", "1st", "f<", "f>", "f<1>>", 'f"', "f;g", "f(a)(b", "f g", "f<\\>", "f<{}>"]
)
def test_what_is_no_name_of_a_kernel(text):
    assert not is_entry(text)


def spec_of(folder, text=SPACE):
    (folder / "spmv.cu").write_text(SOURCE)
    (folder / "spmv.py").write_text("def reference(inputs, sizes):\n    return {}\n")
    (folder / "spmv.yaml").write_text(text)
    return load_space(folder / "spmv.yaml")


def test_a_template_compiles_for_every_value_of_its_parameters(tmp_path):
    pytest.importorskip("cuda.bindings.nvrtc")
    path = spec_of(tmp_path).path
    (found,) = survey(Target(path), [architecture("sm_90")], Settings(compilers=1))
    assert [str(item.failure) for item in found.checked if item.failure] == []
    assert len(found.checked) == 8 and all(item.registers for item in found.checked)


def test_only_cuda_has_names_of_templates(tmp_path):
    with pytest.raises(SpaceError, match=r"launch\[0\].entry: expected a name of letters"):
        spec_of(tmp_path, SPACE.replace("dialect: cuda", "dialect: opencl"))
    with pytest.raises(SpaceError, match=r"launch\[0\].entry: expected a kernel's name, with template"):
        spec_of(tmp_path, SPACE.replace("FLAG>", "FLAG"))


def test_a_cache_file_keeps_the_name_and_refuses_anything_else():
    stored = record()
    step = replace(stored.launch[0], entry="sparse::spmv<T, 128>")
    stored = replace(stored, launch=(step, *stored.launch[1:]))
    assert parse_record(record_text(stored), "file") == stored
    with pytest.raises(CacheError, match="a kernel's name"):
        parse_record(record_text(stored).replace("spmv<T, 128>", "spmv; evil"), "file")


def test_an_array_may_be_copied_to_a_variable_of_the_source(tmp_path):
    entry = "{name: w, dtype: float32, shape: [9], role: in, fill: {constant: 1}, symbol: sparse::weights}"
    text = SPACE.replace("launch:", f"  - {entry}\nlaunch:")
    spec = spec_of(tmp_path, text)
    (argument,) = (item for item in spec.arguments if item.symbol)
    assert (argument.name, argument.symbol) == ("w", "sparse::weights")
    space = bind(spec, architecture("sm_90").device, problem_of(spec, architecture("sm_90").device))
    assert space.symbol_names(space.launches(spec.default)) == (
        "sparse::spmv<float, 128, false>",
        "sparse::weights",
    )
    for wrong, message in {
        text.replace("role: in,", "role: inout,"): "has the role in, not inout",
        text.replace("[y, n]", "[y, n, w]"): "w is copied to sparse::weights; a launch does not pass it",
        text.replace("sparse::weights", "'a b'"): "expected the name of a variable",
        text.replace("dialect: cuda", "dialect: opencl"): "only dialect cuda has variables",
    }.items():
        with pytest.raises(SpaceError, match=message):
            spec_of(tmp_path, wrong)
