"""Sizes that no memory holds: how a kernel counts there is read by running it on indices alone."""

import pytest

from tests.further_sizes_example import sizes_and_instance

SPACE = """\
schema: 1
kernel: doubled
dialect: cuda
source: doubled.cu
reference: doubled.py
dtypes: [float32]
sizes: {default: {rows: 4096, columns: 4096}}
verify_sizes: [{rows: 1, columns: 1}, {rows: 33, columns: 65}]
parameters:
  BLOCK: [64]
default: {BLOCK: 64}
arguments:
  - {name: x, dtype: float32, shape: [rows, columns], role: in, fill: {uniform: [-1, 1]}}
  - {name: y, dtype: float32, shape: [rows, columns], role: out}
  - {name: columns, dtype: uint32, value: columns}
launch:
  - {entry: doubled, grid: ["ceil_div(columns, BLOCK)", rows], block: [BLOCK], arguments: [x, y, columns]}
"""
SOURCE = """\
__global__ void doubled(const float *x, float *y, unsigned columns)
{
    const unsigned column = blockIdx.x * BLOCK + threadIdx.x;
    const unsigned hash = column * 2654435761u;  // overflows on purpose, and is no index
    if (column < columns) {
        const size_t at = (size_t)blockIdx.y * columns + column;
        y[at] = 2 * x[at] + 0 * hash;
    }
}
"""
WIDE, NARROW = "(size_t)blockIdx.y * columns", "blockIdx.y * columns"
UNKNOWN = "it is not known if indices overflow in arrays of more than 2^32 elements"
OVERFLOWS = "an index of x overflows, for example at rows=68,736 columns=68,736"


def reason(folder, source=SOURCE, space=SPACE):
    sizes, instance = sizes_and_instance(folder, "doubled", source, space)
    return sizes.unknown_beyond(instance)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (WIDE, ""),
        (NARROW, OVERFLOWS),
        ("(size_t)(int)(blockIdx.y * columns)", OVERFLOWS),
        ("(size_t)x[blockIdx.y]", UNKNOWN),  # what memory holds is not known
    ],
)
def test_an_index_of_32_bits_that_overflows_is_told_with_sizes_at_which_it_does(tmp_path, written, expected):
    assert reason(tmp_path, SOURCE.replace(WIDE, written)) == expected


def test_arguments_that_hold_no_larger_size_leave_nothing_to_check(tmp_path):
    space = SPACE.replace("[rows, columns], role", "[columns], role").replace(", rows], block", ", 1], block")
    assert reason(tmp_path, SOURCE.replace(WIDE, "0u"), space) == ""


def test_the_indices_of_a_kernel_that_is_not_understood_are_not_known(tmp_path):
    source = SOURCE.replace("if (column < columns) {", "if (column >= columns) goto end; {").replace(
        "    }\n}", "    }\nend:;\n}"
    )
    assert reason(tmp_path, source) == UNKNOWN
