"""Mistakes that show only on data, at sizes or in states that a space does not have, on the CPU."""

import json

import pytest

from tests.conftest import Folder
from tests.devices_here import devices_here

SOFTMAX = """\
#define LOOP for (uint c = t; c < columns; c += BLOCK)
__kernel void rows_of(__global const float *x, __global float *y, const uint columns)
{
    __local float cells[BLOCK];
    const uint t = get_local_id(0);
    const size_t row = (size_t)get_group_id(0) * columns;
    float most = -INFINITY, sum = 0;
    LOOP most = fmax(most, x[row + c]);
    cells[t] = most;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < BLOCK; i++)
        most = fmax(most, cells[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    LOOP sum += exp(x[row + c] - most);
    cells[t] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = 0;
    for (uint i = 0; i < BLOCK; i++)
        sum += cells[i];
    LOOP y[row + c] = exp(x[row + c] - most) / sum;
}
"""
ARGMAX = """\
__kernel void rows_of(__global const float *x, __global int *y, const uint columns)
{
    const size_t row = (size_t)get_group_id(0) * columns;
    if (get_local_id(0) == 0) {
        int place = 0;
        for (uint c = 1; c < columns; c++)
            if (x[row + c] > x[row + place])
                place = c;
        y[get_group_id(0)] = place;
    }
}
"""
ADDED = """\
__kernel void rows_of(__global const float *x, __global float *y, const uint columns)
{
    const size_t row = (size_t)get_group_id(0) * columns;
    for (uint c = get_local_id(0); c < columns; c += BLOCK)
        y[row + c] += x[row + c];
}
"""
SPACE = """\
schema: 1
kernel: rows_of
source: rows_of.cl
reference: rows_of.py
sizes:
  default: {rows: 40, columns: 512}
verify_sizes: [{rows: 1, columns: 64}, {rows: 9, columns: 256}]
parameters: {BLOCK: [64], WRONG: [0, 1]}
default: {BLOCK: 64, WRONG: 0}
arguments:
  - {name: x, dtype: float32, shape: [rows, columns], role: in, fill: {normal: [0, 1]}}
  - {name: y, dtype: RESULT}
  - {name: columns, dtype: uint32, value: columns}
launch:
  - {entry: rows_of, grid: [rows], block: [BLOCK], arguments: [x, y, columns]}
verify: {rtol: 1e-4, atol: 1e-7}
"""
EXPECTED = {
    SOFTMAX: "(e := np.exp(x - x.max(1, keepdims=True))) / e.sum(1, keepdims=True)",
    ARGMAX: "x.argmax(1)",
    ADDED: "inputs['y'] + x",
}
RESULT = {
    SOFTMAX: "float32, shape: [rows, columns], role: out",
    ARGMAX: "int32, shape: [rows], role: out",
    ADDED: "float32, shape: [rows, columns], role: inout, fill: {normal: [0, 1]}",
}


@pytest.fixture
def found(tmp_path):
    """Check a right kernel and the same with a mistake; return what is said of the mistake."""
    devices_here("opencl")
    folder = Folder(tmp_path)

    def check(kernel, old, new, *, in_default=False):
        assert old in kernel
        wrong = kernel.replace(old, new)
        source = f"#if WRONG\n{wrong}\n#else\n{wrong if in_default else kernel}\n#endif\n"
        (tmp_path / "rows_of.cl").write_text(source)
        (tmp_path / "rows_of.py").write_text(
            "import numpy as np\n\ndef reference(inputs, sizes):\n"
            f"    x = inputs['x'].astype(float)\n    return {{'y': {EXPECTED[kernel]}}}\n"
        )
        space = SPACE.replace("RESULT", RESULT[kernel])
        (tmp_path / "rows_of.yaml").write_text(space)
        configs = [word for wrong in (0, 1) for word in ("--config", f"WRONG={wrong}")]
        words = ("rows_of.yaml", "--device", "opencl", "--json", "--no-sanitizer", *configs)
        done = folder.run("check", *words)
        right, wrong = (row["detail"] for row in json.loads(done.stdout))
        assert right == "", done.stderr
        return wrong

    return check


@pytest.mark.parametrize(
    ("kernel", "old", "new", "data"),
    [
        (SOFTMAX, "x[row + c] - most", "x[row + c]", "far above"),
        (SOFTMAX, "most = -INFINITY", "most = 0", "far below"),
        (ARGMAX, "> x[row + place]", ">= x[row + place]", "zeros"),
        (
            ARGMAX,
            "(x[row + c] > x[row + place])",
            "((int)(x[row + c] * 65536) > (int)(x[row + place] * 65536))",
            "",
        ),
    ],
    ids=["no maximum", "a maximum from zero", "the last of equals", "compared in fewer bits"],
)
def test_what_only_data_show_that_the_space_does_not_have_is_found(found, kernel, old, new, data):
    assert found(kernel, old, new).startswith(f"with data {data}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LOOP sum +=", "for (uint c = t; c < columns - (columns % BLOCK == 1); c += BLOCK) sum +="),
        ("LOOP y", "for (uint c = t; c < columns && c < 8 * BLOCK; c += BLOCK) y"),
    ],
    ids=["a tail of one", "more columns than any size has"],
)
def test_what_only_other_sizes_show_is_found(found, old, new):
    assert found(SOFTMAX, old, new).startswith("at sizes of its tiles: y[")


def test_a_default_that_changes_its_input_judges_other_sizes_like_any(found):
    whole = "(columns % BLOCK == 1 ? columns - 1 : columns)"
    assert found(ADDED, "c < columns", f"c < {whole}").startswith("at sizes of its tiles: y[")


def test_a_kernel_that_takes_multiples_of_a_tile_only_is_not_called_wrong(found):
    """It says so nowhere, but every size of the space is one."""
    loop = "for (uint c = t; c < columns; c += BLOCK)"
    whole = loop.replace("columns", "columns / BLOCK * BLOCK")
    assert found(SOFTMAX, loop, whole, in_default=True) == ""


LAST_BLOCK = """\
__kernel void sum_of(__global const int *x, volatile __global int *parts, volatile __global int *ticket,
                     __global int *total, const uint n)
{
    const uint block = get_group_id(0);
#if USES
    int sum = 0;
    for (uint i = block * PART; i < min(n, (block + 1) * PART); i++)
        sum += x[i];
    parts[block] = sum;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    if (atomic_inc(ticket) == get_num_groups(0) - 1) {
        sum = 0;
        for (uint i = 0; i < get_num_groups(0); i++)
            sum += parts[i];
        *total = sum;
        if (RESETS)
            *ticket = 0;
    }
#else
    int sum = 0;
    for (uint i = 0; block == 0 && i < n; i++)
        sum += x[i];
    if (block == 0)
        *total = sum;
#endif
}
"""
SUMS = """\
schema: 1
kernel: sum_of
source: sum_of.cl
reference: sum_of.py
sizes:
  default: {n: 5000}
verify_sizes: [{n: 100}, {n: 1025}]
parameters: {PART: [64], USES: [0, 1], RESETS: [0, 1]}
default: {PART: 64, USES: 1, RESETS: 1}
arguments:
  - {name: x, dtype: int32, shape: [n], role: in, fill: {integers: [-9, 9]}}
  - {name: parts, dtype: int32, shape: ["ceil_div(n, PART)"], role: scratch}
  - {name: ticket, dtype: int32, shape: [1], role: inout, fill: {constant: 0}}
  - {name: total, dtype: int32, shape: [1], role: out}
  - {name: n, dtype: uint32, value: n}
launch:
  - {entry: sum_of, grid: ["ceil_div(n, PART)"], block: [1], arguments: [x, parts, ticket, total, n]}
"""


@pytest.mark.parametrize(
    ("default", "other", "is_wrong"),
    [
        ("USES: 1, RESETS: 1", "USES=1,RESETS=0", True),
        ("USES: 1, RESETS: 0", "USES=1,RESETS=1", False),  # programs reset it
        ("USES: 0, RESETS: 0", "USES=1,RESETS=0", False),  # they may: the default does not show it
    ],
)
def test_a_ticket_must_be_as_the_default_leaves_it(tmp_path, default, other, is_wrong):
    devices_here("opencl")
    folder = Folder(tmp_path)
    (tmp_path / "sum_of.cl").write_text(LAST_BLOCK)
    (tmp_path / "sum_of.py").write_text(
        "def reference(inputs, sizes):\n    return {'total': inputs['x'].sum()}\n"
    )
    (tmp_path / "sum_of.yaml").write_text(SUMS.replace("USES: 1, RESETS: 1}", f"{default}}}"))
    words = ("sum_of.yaml", "--device", "opencl", "--json", "--no-sanitizer", "--config", other)
    done = folder.run("check", *words)
    (row,) = json.loads(done.stdout)
    if is_wrong:
        assert row["detail"].startswith(
            "in run 2 of the same, with ticket as the run before left it: total"
        ), row
    else:
        assert row["status"] == "ok", row
