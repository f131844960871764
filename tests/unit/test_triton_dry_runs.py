"""Mistakes in Triton that lint finds by running programs on indices alone, and right kernels, with none."""

import pytest

from autotune.hardware.architectures import architecture
from autotune.space import bind, lint_source, load_space, problem_of

FOUND = ("out_of_bounds", "small_grid", "unwritten_output", "odd_tile")
HEAD = "import triton\nimport triton.language as tl\n\n\n"
SCALED = (
    """\
@triton.jit
def scaled(x, y, n, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside)
    tl.store(y + at, value * tl.sigmoid(value) * scale, mask=inside)
""",
    """\
sizes: {default: {n: 16_777_216}}
verify_sizes: [{n: 1}, {n: 4095}, {n: 4096}, {n: 4097}]
parameters: {BLOCK: [256, 1024, 2048], num_warps: [4, 8]}
default: {BLOCK: 256, num_warps: 4}
arguments:
  - {name: x, dtype: DTYPE, shape: [n], role: in, fill: {normal: [0, 1]}}
  - {name: y, dtype: DTYPE, shape: [n], role: out}
  - {name: n, dtype: int32, value: n}
  - {name: scale, dtype: float32, value: 1.0}
launch:
  - {entry: scaled, grid: ["ceil_div(n, BLOCK)"], arguments: [x, y, n, scale]}
""",
)
SOFTMAX = (
    """\
@triton.jit
def softmax(x, y, stride, rows, columns, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        at = tl.arange(0, BLOCK)
        inside = at < columns
        value = tl.load(x + row * stride + at, mask=inside, other=-float("inf")).to(tl.float32)
        power = tl.exp(value - tl.max(value, axis=0))
        tl.store(y + row * stride + at, power / tl.sum(power, axis=0), mask=inside)
""",
    """\
sizes: {default: {m: 4096, n: 1000}}
verify_sizes: [{m: 1, n: 1}, {m: 5, n: 127}, {m: 33, n: 128}, {m: 7, n: 1000}]
parameters: {ROWS: [1, 2, 4], num_warps: [4, 8]}
derived: {BLOCK: "2 ** ceil(log2(n))"}
default: {ROWS: 1, num_warps: 4}
arguments:
  - {name: x, dtype: DTYPE, shape: [m, n], role: in, fill: {normal: [0, 1]}}
  - {name: y, dtype: DTYPE, shape: [m, n], role: out}
  - {name: stride, dtype: int32, value: n}
  - {name: m, dtype: int32, value: m}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: softmax, grid: ["ceil_div(m, ROWS)"], arguments: [x, y, stride, m, n]}
""",
)
PRODUCT = (
    """\
@triton.jit
def place(program, m, n, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    tall, wide = tl.cdiv(m, BM), tl.cdiv(n, BN)
    first = program // (GROUP * wide) * GROUP
    high = min(tall - first, GROUP)
    return first + program % (GROUP * wide) % high, program % (GROUP * wide) // high


@triton.jit
def product(
    a, b, bias, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr
):
    i, j = place(tl.program_id(0), m, n, BM, BN, GROUP)
    rows, columns = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN)
    steps = tl.arange(0, BK)
    left, right = a + rows[:, None] * k + steps[None, :], b + steps[:, None] * n + columns[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, k, BK):
        one = tl.load(left, mask=(rows[:, None] < m) & (steps[None, :] < k - at), other=0.0)
        other = tl.load(right, mask=(steps[:, None] < k - at) & (columns[None, :] < n), other=0.0)
        total = tl.dot(one, other, total)
        left += BK
        right += BK * n
    if bias is not None:
        total += tl.load(bias + columns, mask=columns < n, other=0.0)[None, :]
    tl.store(c + rows[:, None] * n + columns[None, :], total, (rows[:, None] < m) & (columns[None, :] < n))
""",
    """\
sizes: {default: {m: 4096, n: 4096, k: 4096}}
verify_sizes: [{m: 1, n: 1, k: 1}, {m: 63, n: 129, k: 65}, {m: 128, n: 64, k: 33}, {m: 65, n: 127, k: 64}]
parameters: {BM: [32, 64], BN: [32, 64], BK: [32], GROUP: [1, 4]}
default: {BM: 32, BN: 64, BK: 32, GROUP: 4}
arguments:
  - {name: a, dtype: DTYPE, shape: [m, k], role: in, fill: {normal: [0, 1]}}
  - {name: b, dtype: DTYPE, shape: [k, n], role: in, fill: {normal: [0, 1]}}
  - {name: bias, dtype: DTYPE, shape: [n], role: in, fill: {normal: [0, 1]}}
  - {name: c, dtype: DTYPE, shape: [m, n], role: out}
  - {name: m, dtype: int32, value: m}
  - {name: n, dtype: int32, value: n}
  - {name: k, dtype: int32, value: k}
launch:
  - entry: product
    grid: ["ceil_div(m, BM) * ceil_div(n, BN)"]
    arguments: [a, b, bias, c, m, n, k]
""",
)
SHIFTED = (
    """\
@triton.jit
def shifted(x, y, m, n, BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.swizzle2d(tl.program_id(0), tl.program_id(1), tl.num_programs(0), tl.num_programs(1), 2)
    source = tl.make_block_ptr(x, (m, n), (n, 1), (i * BM, 0), (BM, BN), order=(1, 0))
    source = tl.advance(source, (0, j * BN))
    target = tl.make_tensor_descriptor(y, [m, n], [n, 1], [BM, BN])
    target.store([i * BM, j * BN], tl.load(source, boundary_check=(0, 1)) + 1)
""",
    """\
sizes: {default: {m: 4096, n: 1000}}
verify_sizes: [{m: 1, n: 1}, {m: 31, n: 65}, {m: 32, n: 64}, {m: 65, n: 127}]
parameters: {BM: [16, 32], BN: [32, 64]}
default: {BM: 16, BN: 32}
arguments:
  - {name: x, dtype: DTYPE, shape: [m, n], role: in, fill: {normal: [0, 1]}}
  - {name: y, dtype: DTYPE, shape: [m, n], role: out}
  - {name: m, dtype: int32, value: m}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: shifted, grid: ["ceil_div(m, BM)", "ceil_div(n, BN)"], arguments: [x, y, m, n]}
""",
)
GATED = (
    """\
@triton.jit
def gated(x, y, m, n, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    gate = x + rows[:, None] * 2 * n + columns[None, :]
    value = tl.load(gate, mask=inside) * tl.load(gate + n, mask=inside)
    tl.store(y + rows[:, None] * n + columns[None, :], value, mask=inside)
""",
    """\
sizes: {default: {m: 4096, n: 11_008}}
verify_sizes: [{m: 17, n: 4095}, {m: 16, n: 4097}, {m: 15, n: 4096}, {m: 1, n: 1}]
parameters: {BM: [1, 2, 4, 8], BN: [256, 512, 1024, 2048], num_warps: [2, 4, 8, 16]}
default: {BM: 1, BN: 1024, num_warps: 4}
arguments:
  - {name: x, dtype: DTYPE, shape: [m, 2 * n], role: in, fill: {normal: [0, 1]}}
  - {name: y, dtype: DTYPE, shape: [m, n], role: out}
  - {name: m, dtype: int32, value: m}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: gated, grid: ["ceil_div(m, BM)", "ceil_div(n, BN)"], arguments: [x, y, m, n]}
""",
)
SUMS = (  # nothing keeps a program within the rows
    """\
@triton.jit
def sums(x, y, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(y + row, tl.sum(tl.load(x + row * n + at, mask=at < n, other=0.0), axis=0))
""",
    """\
sizes: {default: {m: 700, n: 100}}
verify_sizes: [{m: 1, n: 1}, {m: 5, n: 100}]
parameters: {BLOCK: [128, 256]}
default: {BLOCK: 128}
arguments:
  - {name: x, dtype: DTYPE, shape: [m, n], role: in, fill: {uniform: [-1, 1]}}
  - {name: y, dtype: DTYPE, shape: [m], role: out}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: sums, grid: [m], arguments: [x, y, n]}
""",
)
KERNELS = {
    "scaled": SCALED,
    "softmax": SOFTMAX,
    "product": PRODUCT,
    "shifted": SHIFTED,
    "gated": GATED,
    "sums": SUMS,
}


def findings(folder, kernel, *edits):
    source, space = KERNELS[kernel]
    for old, new in edits:
        assert (source + space).count(old) == 1, old
        source, space = source.replace(old, new), space.replace(old, new)
    (folder / "kernel.py").write_text(HEAD + source)
    (folder / "reference.py").write_text("def reference(inputs, sizes):\n    return {}\n")
    head = f"schema: 1\nkernel: {kernel}\ndialect: triton\nsource: kernel.py\nreference: reference.py\n"
    (folder / "kernel.yaml").write_text(f"{head}dtypes: [float32]\n{space}")
    spec, device = load_space(folder / "kernel.yaml"), architecture("sm_90").device
    bound = bind(spec, device, problem_of(spec, device))
    return [one for one in lint_source(bound, HEAD + source) if one.kind in FOUND]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_right_kernel_has_no_finding(tmp_path, kernel):
    assert findings(tmp_path, kernel) == []


@pytest.mark.parametrize(
    ("kernel", "kind", "old", "new"),
    [
        ("scaled", "small_grid", "ceil_div(n, BLOCK)", "ceil_div(n, 2 * BLOCK)"),
        ("scaled", "small_grid", "ceil_div(n, BLOCK)", "max(n // BLOCK, 1)"),
        ("scaled", "small_grid", "tl.program_id(0) * BLOCK", "tl.program_id(0) * (BLOCK // 2)"),
        ("scaled", "out_of_bounds", "scale, mask=inside)", "scale)"),
        ("scaled", "out_of_bounds", "at < n", "at <= n"),
        (
            "scaled",
            "out_of_bounds",
            "{name: x, dtype: DTYPE, shape: [n]",
            "{name: x, dtype: DTYPE, shape: [1]",
        ),
        ("scaled", "unwritten_output", "tl.program_id(0)", "tl.program_id(1)"),
        ("scaled", "odd_tile", "BLOCK: [256, 1024, 2048]", "BLOCK: [256, 768, 2048]"),
        ("scaled", "odd_tile", "num_warps: [4, 8]", "num_warps: [4, 6]"),
        ("softmax", "unwritten_output", "at < columns", "at < rows"),
        ("softmax", "unwritten_output", "2 ** ceil(log2(n))", "min(512, 2 ** ceil(log2(n)))"),
        ("softmax", "unwritten_output", "y + row * stride", "y + 0 * row"),  # programs overwrite each other
        ("softmax", "odd_tile", "tl.arange(0, BLOCK)", "tl.arange(0, 3 * BLOCK // 2)"),
        ("softmax", "small_grid", "tl.num_programs(0))", "4096)"),
        ("softmax", "out_of_bounds", "value: n}\n  - {name: m,", "value: m}\n  - {name: m,"),
        ("softmax", "out_of_bounds", "shape: [m, n], role: out", "shape: [m, n // 2 + 1], role: out"),
        ("softmax", "out_of_bounds", ', mask=inside, other=-float("inf"))', ")"),
        ("product", "out_of_bounds", "(rows[:, None] < m) & (steps[None, :] < k - at)", "rows[:, None] < m"),
        ("product", "out_of_bounds", "total, (rows[:, None] < m)", "total, (rows[:, None] < n)"),
        ("product", "out_of_bounds", "mask=columns < n, other=0.0)[None", "other=0.0)[None"),
        ("product", "small_grid", " * ceil_div(n, BN)", ""),
        ("product", "unwritten_output", "i * BM + tl.arange(0, BM)", "i * BN + tl.arange(0, BM)"),
        ("product", "small_grid", "min(tall - first, GROUP)", "GROUP"),
        ("shifted", "small_grid", '"ceil_div(n, BN)"', '"n // BN + 1 - (n % 2)"'),
        ("shifted", "unwritten_output", "y, [m, n]", "y, [m, n - 1]"),
        ("shifted", "out_of_bounds", "boundary_check=(0, 1)", "boundary_check=(0,)"),
        ("shifted", "out_of_bounds", ", boundary_check=(0, 1)", ""),
        ("shifted", "out_of_bounds", "x, (m, n)", "x, (m + 1, n)"),
        ("shifted", "out_of_bounds", "y, [m, n], [n, 1]", "y, [m, n], [n + 1, 1]"),
        ("sums", "small_grid", "grid: [m]", "grid: [m if m < 2 else m - 1]"),
        ("sums", "small_grid", "grid: [m]", "grid: [1]"),
        ("sums", "out_of_bounds", "grid: [m]", "grid: [m + 1]"),
        (  # many programs of the first configurations leave steps for the last one
            "gated",
            "small_grid",
            '["ceil_div(m, BM)", "ceil_div(n, BN)"]',
            '["ceil_div(n, BN)", "ceil_div(m, BM)"]',
        ),
    ],
)
def test_a_mistake_is_found(tmp_path, kernel, kind, old, new):
    assert kind in {one.kind for one in findings(tmp_path, kernel, (old, new))}


def test_a_finding_names_the_line_the_program_the_element_and_the_configuration(tmp_path):
    (found,) = findings(tmp_path, "scaled", ("scale, mask=inside)", "scale)"))
    assert found.placed == (
        f"{tmp_path}/kernel.py:10: program (0, 0, 0) writes element 1 of y, which has 1, with BLOCK=256 "
        "num_warps=4 at n=1; mask the access, or correct the shape of y"
    )


def test_a_mistake_in_a_helper_is_at_the_line_of_the_kernel_that_calls_it(tmp_path):
    (tmp_path / "helpers.py").write_text(
        f"{HEAD}@triton.jit\ndef put(place, value, inside):\n    tl.store(place, value)\n"
    )
    edits = (
        ("@triton.jit\n", "from helpers import put\n@triton.jit\n"),
        (
            "tl.store(y + at, value * tl.sigmoid(value) * scale, mask=inside)",
            "put(y + at, value * scale, inside)",
        ),
    )
    (found,) = findings(tmp_path, "scaled", *edits)
    assert found.place == f"{tmp_path}/kernel.py:11" and "writes element 1 of y" in found.detail


def test_outputs_of_which_configurations_write_different_parts_name_both(tmp_path):
    (found,) = findings(tmp_path, "scaled", ("inside = at < n", "inside = (at < n) & (at < BLOCK)"))
    assert found.detail == (
        "no program writes element 256 of y with BLOCK=256 num_warps=4 at n=4095, but one does with "
        "BLOCK=2048 num_warps=8; correct the grid or the source"
    )


@pytest.mark.parametrize(
    ("kernel", "old", "new"),
    [
        ("scaled", "at < n", "(at < n) & (at * scale < 5)"),  # data decide
        ("scaled", "inside = at < n", "inside = at < tl.load(x).to(tl.int32)"),
        ("scaled", "x + at", "x + tl.load(x).to(tl.int32)"),
        ("scaled", "    tl.store", "    if scale > 2:\n        return\n    tl.store"),
        ("scaled", "    tl.store", "    if scale > 2:\n        at += n\n    tl.store"),
        ("scaled", "    tl.store", "    while tl.load(x) > 0:\n        at += 1\n    tl.store"),
        ("scaled", "    tl.store", "    for _ in range(scale):\n        at += 1\n    tl.store"),
        ("scaled", "    tl.store", "    tl.some_function_of_tomorrow(y)\n    tl.store"),
        ("scaled", "    tl.store", "    y = tl.cast(y, tl.pointer_type(tl.int8))\n    tl.store"),
        ("scaled", "shape: [n], role: out", "shape: [n + 5], role: out"),  # room at the end
        ("softmax", "tl.num_programs(0))", "tl.num_programs(0), num_stages=2)"),
        ("shifted", "x, (m, n)", "x, (tl.load(x).to(tl.int32), n)"),
        ("shifted", "tl.make_block_ptr(x,", "tl.make_block_ptr(tl.load(x),"),
        ("product", "[a, b, bias, c, m, n, k]", "[a, b, None, c, m, n, k]"),
        ("product", "mask=columns < n, other=0.0)[None", "mask=columns < n)[None"),
    ],
)
def test_nothing_is_said_without_proof(tmp_path, kernel, old, new):
    assert findings(tmp_path, kernel, (old, new)) == []


@pytest.mark.parametrize(
    "inside",
    [
        "(at < n) & tl.load(x + at, mask=at < n).to(tl.int1)",
        "(tl.load(x + at, mask=at < n) > 0) & (at < n)",
    ],
)
def test_a_mask_that_data_narrow_still_bounds_what_is_reached(tmp_path, inside):
    edits = (("inside = at < n", f"inside = {inside}"), ("ceil_div(n, BLOCK)", "ceil_div(n, 2 * BLOCK)"))
    assert [one.kind for one in findings(tmp_path, "scaled", *edits)] == ["small_grid"]


@pytest.mark.parametrize(
    ("index", "is_right"),
    [
        ("tl.where(at < n, at, 0)", True),
        ("tl.where(at <= n, at, 0)", False),
        ("tl.minimum(at, n - 1)", True),
        ("tl.minimum(at, n)", False),
        ("at % n", True),
        ("(at % n)[None, :].reshape(BLOCK)", True),
        ("tl.reshape(tl.trans(tl.expand_dims(at % n, 0)), (BLOCK,))", True),
        ("n - 1 - at % n", True),
        ("n - at % n", False),
        ("tl.maximum(-at, 1 - n) * -1", True),
        ("tl.max_contiguous(at % (n + 1), BLOCK)", False),
        ("(at.to(tl.int64) << 1) // 2 % n", True),
        ("at % n ^ 0", True),
        ("(at % n - n) // 2 + n - 1", True),  # quotients of negative numbers are cut towards 0
        ("(at % n - n) // 2 + n", False),
        ("(at % n) + (at >= 0)", False),
        ("(at % n) - (at < 0).to(tl.int32)", True),
        ("at % n + tl.full((BLOCK,), 1, tl.int32)", False),
        ("tl.cdiv(at % n, 1)", True),
    ],
)
def test_numbers_are_counted_as_triton_does(tmp_path, index, is_right):
    edits = (("tl.load(x + at, mask=inside)", f"tl.load(x + {index})"),)
    assert ([one for one in findings(tmp_path, "scaled", *edits) if one.subject == "x"] == []) is is_right


def test_atomics_and_early_returns_count(tmp_path):
    edits = (
        (
            "    inside = at < n\n",
            "    inside = at <= n\n    if tl.program_id(0) * BLOCK >= n:\n        return\n",
        ),
        (
            "tl.store(y + at, value * tl.sigmoid(value) * scale, mask=inside)",
            "tl.atomic_add(y + at, value, inside)",
        ),
    )
    found = findings(tmp_path, "scaled", *edits)
    assert {one.subject for one in found} == {"x", "y"} and {one.kind for one in found} == {"out_of_bounds"}
