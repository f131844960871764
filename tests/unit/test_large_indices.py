"""Sizes that no memory holds: how a kernel counts there is read by running it on indices alone."""

import pytest

from autotune.core.text import table_sizes
from tests.further_sizes_example import sizes_and_instance, sizes_of
from tests.kernel_space import spec_of

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
UNKNOWN = "it is not known if indices overflow in arrays of more than 2^31 elements"
SIGNED = "an index of x overflows beyond 2^31 elements, for example at rows=48,604 columns=48,604"
COUNTED = {"rows": 1, "columns": 16 * 69_633}
OVERFLOWS = "an index of x overflows beyond 2^32 elements, for example at rows=68,736 columns=68,736"


def reason(folder, source=SOURCE, space=SPACE):
    sizes, instance = sizes_and_instance(folder, "doubled", source, space)
    return sizes.index_limit(instance).reason


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (WIDE, ""),
        (NARROW, OVERFLOWS),
        ("(size_t)(int)(blockIdx.y * columns)", SIGNED),
        ("(size_t)x[blockIdx.y]", UNKNOWN),  # what memory holds is not known
    ],
)
def test_an_index_of_32_bits_that_overflows_is_told_with_sizes_at_which_it_does(tmp_path, written, expected):
    assert reason(tmp_path, SOURCE.replace(WIDE, written)) == expected


@pytest.mark.parametrize(
    ("row", "is_long"),
    [
        ("blockIdx.y", False),
        ("(unsigned short)blockIdx.y", True),
        ("(Row)blockIdx.y", True),
        ("(blockIdx.y & 0xffff)", True),
        ("(size_t)(short)x[column]", True),  # whatever memory holds
        ("(size_t)(unsigned char)blockIdx.y", False),  # sizes of tiles are larger than 256
    ],
)
def test_a_kernel_with_integers_of_16_bits_runs_beyond_them(tmp_path, row, is_long):
    source = "typedef unsigned short Row;\n" + SOURCE.replace("(size_t)blockIdx.y", row)
    sizes, instance = sizes_and_instance(tmp_path, "doubled", source, SPACE)
    found = [dict(one.problem.sizes) for one in sizes.of_tiles(instance)]
    long = [{"rows": 69_633, "columns": 1}, {"rows": 1, "columns": 69_633}]
    assert [one for one in found if max(one.values()) > 65_536] == long * is_long


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("rows: 33,", "rows: 70_000,", [{"rows": 1, "columns": 69_633}]),
        ("rows: 33, columns: 65", "rows: 65, columns: 65", []),  # always equal: two such sizes are too large
    ],
)
def test_sizes_that_the_space_has_beyond_16_bits_are_not_repeated(tmp_path, old, new, expected):
    source = SOURCE.replace("(size_t)blockIdx.y", "(unsigned short)blockIdx.y")
    sizes, instance = sizes_and_instance(tmp_path, "doubled", source, SPACE.replace(old, new))
    found = [dict(one.problem.sizes) for one in sizes.of_tiles(instance)]
    assert [one for one in found if max(one.values()) > 65_536] == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("unsigned short", [COUNTED, {"rows": 69_633, "columns": 1}, {"rows": 1, "columns": 69_633}]),
        ("unsigned", []),
    ],
)
def test_a_number_of_tiles_in_16_bits_is_tried_where_it_is_cut(tmp_path, kind, expected):
    """It holds that of every size up to 65,536 tiles."""
    source = SOURCE.replace("if (column < columns)", "if (blockIdx.x < tiles && column < columns)").replace(
        "    const unsigned hash",
        f"    const {kind} tiles = (columns + BLOCK - 1) / BLOCK;\n    const unsigned hash",
    )
    space = SPACE.replace("BLOCK: [64]", "BLOCK: [16]").replace("BLOCK: 64", "BLOCK: 16")
    sizes, instance = sizes_and_instance(tmp_path, "doubled", source, space)
    found = [dict(one.problem.sizes) for one in sizes.of_tiles(instance)]
    assert [one for one in found if max(one.values()) > 65_536] == expected


@pytest.mark.parametrize(
    ("condition", "power", "sizes"),
    [
        ("columns < 5000", 25, "rows=6,076 columns=6,076"),
        ("columns < 20000", 29, "rows=24,302 columns=24,302"),  # too large to be verified
        ("columns < 7", None, ""),  # both sides are verified
        ("blockIdx.x < 40000", None, ""),  # threads differ: it may be the end of their work
        ("x[0] < 20000", None, ""),
    ],
)
def test_a_condition_unlike_at_the_sizes_of_the_space_is_verified_and_told(tmp_path, condition, power, sizes):
    source = SOURCE.replace("2 * x[at]", f"({condition} ? 2 : 3) * x[at]")
    further, instance = sizes_and_instance(tmp_path, "doubled", source, SPACE)
    said = f"`{condition}` in doubled, never false at sizes of the space, is false beyond 2^{power} elements"
    found = further.index_limit(instance)
    assert found.reason == (f"{said}, for example at {sizes}" if power else "")
    verified = [table_sizes(one.problem.sizes) for one in further.at_changed_condition(instance)]
    assert verified == [sizes] * (power == 25)


def test_an_index_that_overflows_before_a_last_block_without_work_is_found(tmp_path):
    inner = SOURCE.replace("if (column < columns)", "if (column < columns && blockIdx.y + 1 < gridDim.y)")
    assert reason(tmp_path, inner) == ""
    assert reason(tmp_path, inner.replace(WIDE, NARROW)) == OVERFLOWS


def test_an_array_that_only_data_leads_to_is_not_known(tmp_path):
    assert reason(tmp_path, SOURCE.replace("y[at] =", "if (x[at] > 0)\n            y[at] =")) == UNKNOWN


def test_arguments_that_hold_no_larger_size_leave_nothing_to_check(tmp_path):
    space = SPACE.replace("[rows, columns], role", "[columns], role").replace(", rows], block", ", 1], block")
    assert reason(tmp_path, SOURCE.replace(WIDE, "0u"), space) == ""


@pytest.mark.parametrize(("kind", "found"), [("int", SIGNED), ("unsigned", ""), ("size_t", "")])
def test_arguments_of_32_bits_hold_sizes_at_which_signed_indices_overflow(tmp_path, kind, found):
    space = SPACE.replace("dtype: uint32, value: columns", "dtype: uint32, value: rows * columns")
    space = space.replace('"ceil_div(columns, BLOCK)", rows]', '"ceil_div(rows * columns, BLOCK)", 1]')
    at = f"const {kind} at = blockIdx.x * BLOCK + threadIdx.x;"
    source = (
        SOURCE[: SOURCE.index("    const unsigned column")]
        + f"    {at}\n    if (at < columns)\n        y[at] = x[at];\n}}\n"
    )
    assert reason(tmp_path, source, space) == found


def test_the_indices_of_a_kernel_that_is_not_understood_are_not_known(tmp_path):
    source = SOURCE.replace("if (column < columns) {", "if (column >= columns) goto end; {").replace(
        "    }\n}", "    }\nend:;\n}"
    )
    assert reason(tmp_path, source) == UNKNOWN


def test_arrays_behind_pointers_of_a_structure_leave_it_unknown_if_their_indices_overflow(tmp_path):
    fields = "{x: pointer, y: pointer, columns: uint32}, value: {x: x, y: y, columns: columns}"
    space = SPACE.replace("name: columns, dtype: uint32, value: columns", f"name: p, fields: {fields}")
    source = SOURCE.replace("const float *x, float *y, unsigned columns", "const P p").replace(WIDE, NARROW)
    for name in ("y[at] =", "x[at]", "columns +", "columns)"):
        source = source.replace(name, f"p.{name}")
    source = f"struct P {{const float *x; float *y; unsigned columns;}};\n{source}"
    assert reason(tmp_path, source, space.replace("[x, y, columns]", "[p]")) == UNKNOWN


IN_TRITON = """\
schema: 1
kernel: doubled
dialect: triton
source: doubled_kernel.py
reference: doubled.py
dtypes: [float32]
sizes: {default: {n: 1_000_000}}
verify_sizes: [{n: 1}, {n: 129}]
parameters:
  BLOCK: [128]
default: {BLOCK: 128}
arguments:
  - {name: x, dtype: float32, shape: [n], role: in, fill: {uniform: [-1, 1]}}
  - {name: y, dtype: float32, shape: [n], role: out}
  - {name: n, dtype: int64, value: n}
launch:
  - {entry: doubled, grid: ["ceil_div(n, BLOCK)"], arguments: [x, y, n]}
"""
KERNEL = """\
import triton
import triton.language as tl

WIDE = tl.constexpr(True)

@triton.jit
def first_of(program, SIZE: tl.constexpr):
    return program * SIZE

@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    hashed = tl.program_id(0) * 40503 * 65521  # overflows on purpose, and is no index
    at = {}
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)
"""
CAST = "tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)"
IN_32_BITS = "an index of x overflows beyond 2^31 elements, for example at n=2,362,232,014"


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (CAST, ""),
        (CAST.replace(".to(tl.int64)", ""), IN_32_BITS),
        (f"({CAST.replace('.to(tl.int64)', '')}).to(tl.int64)", IN_32_BITS),
        ("first_of(tl.program_id(axis=0), BLOCK) + tl.arange(0, BLOCK)", IN_32_BITS),
        ("first_of(tl.cast(tl.program_id(0), tl.int64), SIZE=BLOCK) + tl.arange(0, BLOCK)", ""),
        (f"{CAST}\n    if not WIDE:\n        at = at.to(tl.int32)", ""),
        (f"{CAST}\n    if n > 7:\n        at = at.to(tl.int32)", IN_32_BITS),
        (f"tl.load(x + {CAST})", UNKNOWN),  # what memory holds is not known
    ],
)
def test_an_index_in_triton_has_32_bits_unless_it_is_cast_before_it_grows(tmp_path, index, expected):
    assert reason(tmp_path, KERNEL.replace("{}", index), IN_TRITON) == expected


LOOP = """\
    at = tl.arange(0, BLOCK){}
    for start in range(0, n, BLOCK):
        tl.store(y + at, 2 * tl.load(x + at))
        at += BLOCK
"""


def test_an_index_in_triton_that_grows_in_each_iteration_of_a_loop_overflows_too(tmp_path):
    head = KERNEL[: KERNEL.index("    at = ")]
    assert reason(tmp_path, head + LOOP.replace("{}", ""), IN_TRITON) == IN_32_BITS
    assert reason(tmp_path, head + LOOP.replace("{}", ".to(tl.int64)"), IN_TRITON) == ""


def test_a_pointer_in_triton_that_moves_on_in_each_iteration_does_not_overflow(tmp_path):
    moving = LOOP.replace("{}", "").replace("at += BLOCK", "x += BLOCK\n        y += BLOCK")
    assert reason(tmp_path, KERNEL[: KERNEL.index("    at = ")] + moving, IN_TRITON) == ""


def test_arguments_after_a_pointer_that_is_not_passed_keep_their_places(tmp_path):
    text = KERNEL.replace("{}", CAST).replace("doubled(x, y, n,", "doubled(x, bias, y, n,")
    text = text.replace("2 * tl.load", "(0 if bias is None else n) + tl.load")
    assert reason(tmp_path, text, IN_TRITON.replace("[x, y, n]", "[x, None, y, n]")) == ""


@pytest.mark.parametrize(
    ("space", "source"),
    [
        (SPACE, SOURCE.replace(WIDE, NARROW)),
        (IN_TRITON, KERNEL.replace("{}", CAST.replace(".to(tl.int64)", ""))),
    ],
)
def test_a_part_of_an_array_is_followed_as_an_array_is(tmp_path, space, source):
    with_part = space.replace("launch:\n", "  - {name: part, dtype: float32, of: x, offset: 0}\nlaunch:\n")
    with_part = with_part.replace("arguments: [x,", "arguments: [part,")
    assert reason(tmp_path, source, with_part).startswith("an index of part overflows")


NARROW_PRODUCT = "an index of a overflows beyond 2^31 elements, for example at m=288,358 n=8,192 k=8,192"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("attention", ""),
        ("layer_norm", ""),
        ("reduce", ""),
        ("softmax", ""),
        ("matmul", NARROW_PRODUCT),
        ("matmul_float8", NARROW_PRODUCT),
    ],
)
def test_the_indices_of_every_shipped_kernel_in_triton_are_followed(name, expected):
    sizes, instance = sizes_of(spec_of(f"triton_{name}"))
    assert sizes.index_limit(instance).reason == expected
