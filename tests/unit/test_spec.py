"""Space files: what a good one says, and the one line that refuses each kind of bad one."""

import hashlib

import pytest
import yaml

from autotune.core.records import LaunchSpec, Parameter
from autotune.errors import SpaceError
from autotune.space import Constraint, Fill, FilledArgument, Landmark, load_space
from tests.conftest import ROOT
from tests.space_example import YAML, write_space


def test_a_space_file_becomes_a_record(tmp_path):
    path = write_space(tmp_path)
    spec = load_space(path)
    assert (spec.kernel, spec.dialect, spec.dtypes) == ("reduce", "portable", ("int32", "float32"))
    assert (spec.source, spec.reference) == (tmp_path / "reduce.cu", tmp_path / "reduce.py")
    assert spec.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert spec.sizes == {"default": {"n": 1_048_576}, "cpu": {"n": 4096}}
    assert spec.verify_sizes == ({"n": 1}, {"n": 1003})
    assert spec.parameters[0] == Parameter("ALGORITHM", ("tree", "shuffle"))
    assert spec.parameters[3] == Parameter("UNROLL", (False, True))
    assert spec.constraints[0] == Constraint("BLOCK_SIZE <= device.max_threads_per_block", 19)
    assert spec.derived == {"PER_BLOCK": "BLOCK_SIZE * VECTOR", "BLOCKS": "ceil_div(n, PER_BLOCK)"}
    assert spec.default == {"ALGORITHM": "tree", "BLOCK_SIZE": 64, "VECTOR": 1, "UNROLL": False}
    assert spec.landmarks[0] == Landmark("first", {**spec.default, "BLOCK_SIZE": 32}, "29.45 ms")
    assert spec.landmarks[1].note == ""
    assert spec.compiler_options == {"cuda": {"--maxrregcount": "32 * VECTOR", "--use_fast_math": "UNROLL"}}
    assert (spec.rtol, spec.atol) == ('0 if DTYPE == "int32" else 1e-5', "0")
    assert spec.work == {"bytes": "4 * n", "flops": "n"}


@pytest.mark.parametrize(
    ("series", "values"),
    [
        ("range(32, 129, 32)", (32, 64, 96, 128)),
        ("range(64,67)", (64, 65, 66)),
        ("range(64, 31, -32)", (64, 32)),
        ("powers_of_two(32, 64)", (32, 64)),
        ("powers_of_two(33, 260)", (64, 128, 256)),
    ],
)
def test_a_series_stands_for_its_numbers(tmp_path, series, values):
    text = YAML.replace("BLOCK_SIZE: [32, 64, 2048]", f"BLOCK_SIZE: {series}")
    assert load_space(write_space(tmp_path, text.replace("BLOCK_SIZE: 32", "BLOCK_SIZE: 64"))).parameters[
        1
    ] == Parameter("BLOCK_SIZE", values)


def test_arguments_and_launches_become_records(tmp_path):
    spec = load_space(write_space(tmp_path))
    array, _, _, scalar = spec.arguments
    assert array == FilledArgument("x", "DTYPE", "in", ("n",), fill=Fill("integers", (-100, 100)))
    assert scalar == FilledArgument("n", "int32", "scalar", (), "n")
    assert spec.launch == (
        LaunchSpec("reduce", ("BLOCKS",), ("BLOCK_SIZE",), ("x", "partial", "n"), "4 * VECTOR"),
        LaunchSpec("finish", ("1",), ("32",), ("partial", "sum"), when="BLOCKS > 1"),
    )


def test_optional_sections_have_defaults(tmp_path):
    optional = ("verify_sizes", "constraints", "landmarks", "compiler_options", "verify", "work")
    lines = YAML.splitlines(keepends=True)
    kept, skipping = [], False
    for line in lines:
        if not line.startswith(" "):
            skipping = line.split(":")[0] in optional
        if not skipping:
            kept.append(line)
    spec = load_space(write_space(tmp_path, "".join(kept)))
    assert (spec.verify_sizes, spec.constraints, spec.landmarks) == ((), (), ())
    assert (spec.compiler_options, spec.work, spec.rtol, spec.atol) == ({}, {}, "0", "0")


@pytest.mark.parametrize(
    ("scalars", "expected"),
    [
        ("[8, 010, 0x10, 1_000]", (8, 10, 16, 1000)),
        ("[1.5, 2e-3, -.5, 1e3]", (1.5, 0.002, -0.5, 1000.0)),
        ("[on, yes, no, off]", ("on", "yes", "no", "off")),
        ('["1", b, 2d]', ("1", "b", "2d")),
        ("[True, FALSE]", (True, False)),
    ],
)
def test_scalars_are_read_as_yaml_1_2_reads_them(tmp_path, scalars, expected):
    text = YAML.replace("derived:", f"  EXTRA: {scalars}\nderived:", 1)
    text = text.replace("UNROLL: false}", f"UNROLL: false, EXTRA: {scalars[1:].split(',')[0]}}}", 1)
    values = load_space(write_space(tmp_path, text)).parameters[-1].values
    assert values == expected
    assert [type(value) for value in values] == [type(value) for value in expected]


def test_an_array_can_be_a_copy_of_an_earlier_equal_one(tmp_path):
    copied = "- {name: y, dtype: DTYPE, shape: [n], role: inout, fill: {copy: x}}"
    path = write_space(tmp_path, YAML.replace("  - {name: partial", f"  {copied}\n  - {{name: partial", 1))
    assert load_space(path).arguments[1].fill == Fill("copy", ("x",))
    path.write_text(path.read_text().replace("name: y, dtype: DTYPE", "name: y, dtype: int32"))
    with pytest.raises(SpaceError, match="expected an array of the same dtype and shape"):
        load_space(path)


def test_an_array_can_be_the_transpose_of_an_earlier_one(tmp_path):
    rows = "- {name: rows, dtype: DTYPE, shape: [n, 3], role: in, fill: {constant: 1}}"
    columns = "- {name: columns, dtype: DTYPE, shape: [3, n], role: in, fill: {transpose: rows}}"
    path = write_space(
        tmp_path, YAML.replace("  - {name: partial", f"  {rows}\n  {columns}\n  - {{name: partial", 1)
    )
    assert load_space(path).arguments[2].fill == Fill("transpose", ("rows",))
    path.write_text(path.read_text().replace("shape: [3, n]", "shape: [n, 3]"))
    with pytest.raises(SpaceError, match="expected an array of the same dtype and shape in reverse"):
        load_space(path)


@pytest.mark.parametrize("space", sorted(path.name for path in (ROOT / "spaces").glob("*.yaml")))
def test_a_space_is_read_as_without_libyaml(monkeypatch, space):
    fast = load_space(ROOT / "spaces" / space)
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    assert load_space(ROOT / "spaces" / space) == fast
