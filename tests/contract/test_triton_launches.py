"""Launches of Triton kernels: pointers that are None, constants of one launch, sources in packages."""

import re
import sys

import pytest

pytest.importorskip("triton", reason="needs the extra triton")

from autotune.compilers.known_compilers import cuda_compiler
from autotune.compilers.source_text import read_source
from autotune.compilers.triton_binary import unpack
from autotune.core.launch_plan import TRITON, symbol_names
from autotune.core.records import Entry
from autotune.errors import SpaceError
from autotune.hardware.architectures import architecture
from autotune.serving.cache_schema import parse_record, record_text
from autotune.space import bind, load_space, problem_of
from autotune.tuning.cache_entry import record_of
from tests.cache_example import PROVENANCE

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def scale(x, bias, y, n, FACTOR: tl.constexpr, T: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    found = tl.load(x + at, at < n).to(T) * FACTOR
    if bias is not None:
        found += tl.load(bias + at, at < n)
    tl.store(y + at, found, at < n)
"""
SPACE = """
schema: 1
kernel: scale
dialect: triton
source: {source}
reference: reference.py
dtypes: [float32]
sizes: {{default: {{n: 4096}}}}
parameters: {{BLOCK: [256, 512]}}
derived: {{T: DTYPE}}
default: {{BLOCK: 256}}
arguments:
  - {{name: x, dtype: DTYPE, shape: [n], role: in, fill: {{uniform: [0, 1]}}}}
  - {{name: y, dtype: DTYPE, shape: [n], role: inout, fill: {{uniform: [0, 1]}}}}
  - {{name: n, dtype: int32, value: n}}
launch:
  - {{entry: scale, grid: ["ceil_div(n, BLOCK)"], arguments: [x, None, y, n], constants: {{FACTOR: 2}}}}
  - {{entry: scale, grid: ["ceil_div(n, BLOCK)"], arguments: [x, y, y, n], constants: {{FACTOR: n // 1024}}}}
"""
DEVICE = architecture("sm_90").device


@pytest.fixture
def space_file(tmp_path):
    def write(text=SPACE, source="scale.py"):
        (tmp_path / "scale.py").write_text(KERNEL)
        (tmp_path / "reference.py").write_text("def reference(inputs, sizes): ...")
        path = tmp_path / "scale.yaml"
        path.write_text(text.format(source=source))
        return path

    return write


def test_a_pointer_may_be_none_and_launches_have_constants_of_their_own(space_file):
    spec = load_space(space_file())
    launches = bind(spec, DEVICE, problem_of(spec, DEVICE)).launches(spec.default, {})
    plain, biased = launches
    assert plain.entry.startswith("scale('*fp32:16', 'None', '*fp32:16', 'i32:16', ")
    assert (plain.arguments, biased.arguments) == (("x", "y", "n"), ("x", "y", "y", "n"))
    assert "FACTOR=2" in plain.entry and "FACTOR=4" in biased.entry
    binary = cuda_compiler("sm_90", TRITON).compile(
        read_source(spec.source).text, (), symbol_names(launches, ())
    )
    kernels = unpack(binary)
    assert (kernels[plain.entry].passed, kernels[biased.entry].passed) == ((0, 1, 2), (0, 1, 2, 3))


def test_the_cache_keeps_them(space_file):
    spec = load_space(space_file())
    entry = Entry({"n": 4096}, "float32", spec.default, 1.0, (0.9, 1.1), None, (), PROVENANCE)
    record = record_of(spec, "", entry)
    assert parse_record(record_text(record), "scale.json").launch == spec.launch


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        ("FACTR: 2", "FACTOR: 2", "FACTR is no tl.constexpr of scale; did you mean FACTOR?"),
        ("FACTOR: m", "FACTOR: 2", "unknown name 'm'"),
        ("BLOCK: 64", "FACTOR: 2", "scale needs FACTOR as a tl.constexpr"),
    ],
)
def test_a_wrong_constant_is_an_error_of_the_space(wrong, right, said, space_file):
    with pytest.raises(SpaceError, match=re.escape(said)):
        load_space(space_file(SPACE.replace(right, wrong)))


def test_a_source_is_found_in_a_package_that_is_not_imported(tmp_path, space_file, monkeypatch):
    package = tmp_path / "site/some_framework"
    (package / "ops").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('was imported')")
    (package / "ops/scale.py").write_text(KERNEL)
    path = space_file(source="some_framework/ops/scale.py")
    with pytest.raises(SpaceError, match="no such file"):
        load_space(path)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert load_space(path).source == package / "ops/scale.py"
    assert "some_framework" not in sys.modules
