"""What lint finds in legal spaces, and that it is quiet about good ones."""

from pathlib import Path

import pytest

from autotune.cli import main
from autotune.hardware.architectures import architecture
from autotune.sources.kernel_source import read_kernel_source
from autotune.space import (
    ConstraintReport,
    bind,
    constraint_report,
    limit_report,
    lint,
    load_space,
    problem_of,
)
from autotune.space.lint_launches import untried_edges
from autotune.space.misspelt import misspelt_names
from tests.conftest import KERNEL, SPACE
from tests.kernel_space import spec_of
from tests.space_example import GPU, SOURCE, YAML, write_space


def bound(folder, text=YAML, source=SOURCE):
    spec = load_space(write_space(folder, text, source))
    return bind(spec, GPU, problem_of(spec, GPU))


def findings(space, source):
    return {
        (finding.kind, finding.subject) for finding in lint(space, source, constraint_report(space)).mistakes
    }


SHIPPED = sorted((Path(__file__).parents[2] / "spaces").glob("*.yaml"))
EXPECTED = {
    ("idle_constraint", 'ALGORITHM != "shuffle" or device.has_shuffle'),  # every GPU of the example has it
    ("unreachable_value", "BLOCK_SIZE=2048"),
    ("untried_edge", "n"),  # of tiles of 64
}


@pytest.mark.parametrize(
    ("kernel", "pitches"),
    [
        ("bicgk", {"columns": 0}),
        ("convolution", {"width": 16}),
        ("matadd", {"columns": 0}),
        ("matmul", {"n": 0, "k": 0}),
        ("transpose", {"rows": 0, "columns": 0}),
    ],
)
def test_rows_of_a_shipped_space_end_within_a_vector_of_four_once_in_its_middle(kernel, pitches):
    sizes = spec_of(kernel).verify_sizes
    for name, halo in pitches.items():
        others = [other for other in pitches if other != name]
        assert any(
            (one[name] + halo) % 4 == 2 and all(one[other] % 4 == 0 for other in others) for one in sizes
        )


def test_each_constraint_is_reported_with_what_it_removes(tmp_path):
    reports = constraint_report(bound(tmp_path))
    assert reports == (
        ConstraintReport("BLOCK_SIZE <= device.max_threads_per_block", 19, 8, 0),
        ConstraintReport('ALGORITHM != "shuffle" or device.has_shuffle', 20, 0, 0),
        ConstraintReport("PER_BLOCK <= 64 and (not UNROLL or VECTOR == 1)", 21, 14, 6),
    )
    assert [report.never_removes for report in reports] == [False, True, False]


def test_a_limit_of_the_device_is_reported_where_no_constraint_repeats_it(tmp_path):
    assert limit_report(bound(tmp_path)) == ()
    without = YAML.replace("  - BLOCK_SIZE <= device.max_threads_per_block\n", "")
    space = bound(tmp_path, without.replace("PER_BLOCK <= 64 and ", ""))
    (limit,) = limit_report(space)
    assert "BLOCK_SIZE" in limit.text and limit.text.endswith("<= device.max_threads_per_block")
    assert (limit.line, limit.removes_alone, limit.appear_without) == (0, 8, 6)


def test_a_parameter_of_other_devices_has_no_unreachable_values(tmp_path):
    for device, found in (('device.backend == "opencl"', set()), ("n > 2 ** 40", {"UNROLL=True"})):
        space = bound(
            tmp_path,
            YAML.replace("UNROLL: [false, true]", f"UNROLL: {{values: [false, true], when: {device}}}"),
        )
        subjects = {
            one.subject
            for one in lint(space, SOURCE, constraint_report(space)).mistakes
            if one.kind == "unreachable_value"
        }
        assert {one for one in subjects if one.startswith("UNROLL")} == found


def test_an_invalid_default_is_found(tmp_path):
    space = bound(tmp_path, YAML.replace("tree, BLOCK_SIZE: 64", "tree, BLOCK_SIZE: 2048"))
    found = [one for one in lint(space, SOURCE, ()).mistakes if one.kind == "invalid_default"]
    assert len(found) == 1 and "BLOCK_SIZE <= device.max_threads_per_block" in found[0].detail


def test_a_constraint_that_removes_something_at_a_size_to_verify_is_not_idle(tmp_path):
    space = bound(tmp_path, YAML.replace("constraints:\n", "constraints:\n  - n % VECTOR == 0\n", 1))
    assert constraint_report(space)[0].never_removes
    assert findings(space, SOURCE) == EXPECTED


@pytest.mark.parametrize(
    ("dtype", "rtol", "mend"),
    [
        ("DTYPE", "1e-5", """'1e-2 if DTYPE in ("float16", "bfloat16") else 1e-05'"""),
        ("bfloat16", "1e-5", "1e-2"),
        ("bfloat16", "1e-2", None),
        ("float32", "1e-5", None),
        ("DTYPE", "0", None),  # exact on purpose
        ("DTYPE", """'1e-2 if DTYPE in ("float16", "bfloat16") else 1e-5'""", None),
    ],
)
def test_a_tolerance_below_the_last_bit_of_16_bits_is_found_with_the_one_to_write(
    tmp_path, dtype, rtol, mend
):
    text = YAML.replace("dtypes: [int32, float32]", "dtypes: [float32, bfloat16]")
    text = text.replace("{name: sum, dtype: DTYPE", f"{{name: sum, dtype: {dtype}")
    text = text.replace("""'0 if DTYPE == "int32" else 1e-5'""", rtol)
    found = [one for one in lint(bound(tmp_path, text), SOURCE, ()).mistakes if one.kind == "tight_tolerance"]
    assert [one.detail.partition("; write rtol: ")[2] for one in found] == ([mend] if mend else [])


def with_parameters(names, parameters, constraints):
    defaults = ", ".join(f"{name}: 0" for name in names)
    text = YAML.replace("derived:\n", f"{parameters}derived:\n", 1)
    text = text.replace("constraints:\n", f"constraints:\n{constraints}", 1)
    return text.replace("UNROLL: false}", f"UNROLL: false, {defaults}}}", 1)


def test_counting_gives_up_on_a_constraint_of_too_many_combinations(tmp_path):
    names = [f"E{position}" for position in range(6)]
    extra = "".join(f"  {name}: [{', '.join(map(str, range(12)))}]\n" for name in names)
    wide = f"  - {' + '.join(names)} >= 0\n"
    narrow = "".join(f"  - {name} == 0\n" for name in names)
    reports = constraint_report(bound(tmp_path, with_parameters(names, extra, wide + narrow)))
    first, second, *_ = reports
    assert (first.removes_alone, first.appear_without, first.never_removes) == (None, None, False)
    assert (second.removes_alone, second.appear_without) == (24 * 11 * 12**5, 110)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (SOURCE, set()),
        ("int x; // ALGORITHM VECTOR", {("unused_parameter", "ALGORITHM")}),
        ('/* ALGORITHM\n */ char *s = "ALGORITHM";', {("unused_parameter", "ALGORITHM")}),
        ("int ALGORITHMS;", {("unused_parameter", "ALGORITHM")}),
        (SOURCE + "#if UNROL\n#endif", {("unknown_macro", "UNROL")}),
        (SOURCE + "#ifdef UNROL\n#endif", {("unknown_macro", "UNROL")}),
        (SOURCE + "# if 1 && \\\n  !defined(UNROL)\n#endif", {("unknown_macro", "UNROL")}),
        (SOURCE + "#if UNROLL\n#elif TILE > 2\n#endif", {("unknown_macro", "TILE")}),
        (SOURCE + "#ifdef DEBUG\n#elif defined(TRACE)\n#endif", set()),
        (SOURCE + "#if ALGORITHM == ALGORITHM_SHUFLE\n#endif", {("unknown_macro", "ALGORITHM_SHUFLE")}),
        (SOURCE + "int x = ALGORITHM == ALGORITHM_SHUFLE;", {("unknown_macro", "ALGORITHM_SHUFLE")}),
        (SOURCE + "int y = k < VECTER;", {("unknown_macro", "VECTER")}),
        (SOURCE + "DEVICE void g() { x[k * UNROL] = 1; }", {("unknown_macro", "UNROL")}),
        (SOURCE + "DEVICE void g() { return UNROL; }", {("unknown_macro", "UNROL")}),
        (SOURCE + "#define MORE (2 * UNROL)\n", {("unknown_macro", "UNROL")}),
        (SOURCE + "const int UNROL = 4; int y = UNROL;", set()),
        (SOURCE + "int VECTORS = 4, VECTOR2 = 1; float y = VECTORS + VECTOR2;", set()),
        (
            SOURCE + "DEVICE void g() { x = f(N * UNROL) + (k & UNROL) + (k > UNROL); }",
            {("unknown_macro", "UNROL")},
        ),
        (SOURCE + "DEVICE void g() { float *sums, *VECTORS; y = VECTORS; }", set()),
        (SOURCE + "void f(const float* x, float* VECTORS) { y = VECTORS[0] + VECTORS; }", set()),
        (SOURCE + "void f(int (&VECTORS)[3], array<int, 2> UNROLLS) { y = VECTORS + UNROLLS; }", set()),
        (SOURCE + "template <int VECTORS, typename VECTOR_T> void f(VECTOR_T x) { x += VECTORS; }", set()),
        (SOURCE + "enum kinds { VECTORS, UNROLLS = 2 }; int y = VECTORS + UNROLLS;", set()),
        (SOURCE + "DEVICE void g() { y = of.VECTORS + one->UNROLLS + Some::VECTORS; }", set()),
        (SOURCE + "#define VECTOR_OF(VECTORS) x[VECTORS]\n#define JOIN(x) VECTOR_##x\n", set()),
        (SOURCE + "// #if TILE\n/*\n#if TILE\n*/", set()),
        (SOURCE + "#define TILE 4\n#if TILE > 2\n#endif", set()),
        (SOURCE + "#ifdef __CUDACC__\n#elif defined(CL_VERSION_2_0) && DTYPE_FLOAT64\n#endif", set()),
        (SOURCE + "#define GLOBAL_MEM_FENCE 1\nDEVICE void g() { barrier(CLK_GLOBAL_MEM_FENCE); }", set()),
        (SOURCE + "#if _MSC_VER > 1900 || SIZE_MAX > 9\n#endif", set()),
        (SOURCE + "#define \\\n  ALGORITHM 4\n", set()),
        (SOURCE + "#ifdef MEMORY_ONLY\n#elif defined(COMPUTE_ONLY)\n#endif", set()),
        (SOURCE + '#line 1 "OTHER.cu"\n#if UNROLL && DTYPE_INT32\n#endif', set()),
        (SOURCE + '#line 1 "other.h"\n#if LEVEL > 1\n#define LEVER 1\n#endif', set()),
        (SOURCE + '#line 1 "other.h"\n#if UNROL > 1\n#endif', {("unknown_macro", "UNROL")}),
    ],
)
def test_unused_parameters_and_unknown_macros_are_found(tmp_path, source, found):
    assert findings(bound(tmp_path), source) == EXPECTED | found


@pytest.mark.parametrize(
    ("lines", "reserved"),
    [
        ('#include "portable.h"\n#define WARPS (BLOCK_SIZE / 32)\n', {"WARPS"}),
        ('#include "portable_reduce.h"\n#define BARRIER() ;\n#define OWN 1\n', {"BARRIER"}),
        ('#define WARPS 1\n#include "portable.h"\n', set()),
        ("#define WARPS (BLOCK_SIZE / 32)\n", set()),
    ],
)
def test_a_macro_that_replaces_a_word_of_the_portable_dialect_is_found(tmp_path, lines, reserved):
    source = lines + SOURCE.replace('#include "portable.h"\n', "")
    found = findings(bound(tmp_path, source=source), source)
    assert {subject for kind, subject in found if kind == "reserved_word"} == reserved


def test_a_misspelt_macro_gets_a_suggestion(tmp_path):
    space = bound(tmp_path)
    source = SOURCE + "#if ALGORITHM_SHUFLE\n#endif"
    found = [str(finding) for finding in lint(space, source, constraint_report(space)).mistakes]
    place = f"{tmp_path}/reduce.cu:5"
    assert f"{place}: ALGORITHM_SHUFLE: nothing defines it; did you mean ALGORITHM_SHUFFLE?" in found


SUMS = """\
schema: 1
kernel: sums
dialect: opencl
source: reduce.cu
reference: reduce.py
sizes: {default: {rows: 2048}}
verify_sizes: [{rows: 100}]
parameters: {BLOCK: [64, 128], ROWS: [1, 2, 4]}
default: {BLOCK: 64, ROWS: 1}
arguments:
  - {name: a, dtype: float32, shape: [4 * rows], role: in, fill: {uniform: [-1, 1]}}
  - {name: y, dtype: float32, shape: [rows], role: out}
  - {name: rows, dtype: int32, value: rows}
launch:
  - {entry: sums, grid: [GRID], block: [BLOCK], arguments: [a, y, rows]}
verify: {rtol: 1e-5, atol: 0}
"""
SUM_OF_ROWS = """\
__kernel void sums(__global const float *a, __global float *y, int rows)
{
    const int first = (get_group_id(0) * BLOCK + get_local_id(0)) * ROWS;
    for (int r = 0; r < ROWS; r++)
        if (first + r < rows)
            y[OUT] = a[4 * (first + r)] + a[4 * (first + r) + 1];
}
"""


@pytest.mark.parametrize(
    ("grid", "out", "is_found"),
    [
        ("ceil_div(rows, BLOCK)", "first + r", True),
        ("ceil_div(rows, BLOCK * ROWS)", "first + r", False),
        ("ceil_div(rows, BLOCK)", "get_group_id(0) * BLOCK + get_local_id(0)", False),  # an element for each
    ],
)
def test_blocks_without_an_element_are_found(tmp_path, grid, out, is_found):
    source = SUM_OF_ROWS.replace("OUT", out)
    space = bound(tmp_path, SUMS.replace("GRID", f'"{grid}"'), source)
    assert (("large_grid", "launch[0].grid[0]") in findings(space, source)) == is_found


def test_a_parameter_that_only_constraints_read_is_unused(tmp_path):
    text = YAML.replace("--use_fast_math: UNROLL", "--use_fast_math: true")
    assert findings(bound(tmp_path, text), SOURCE) == EXPECTED | {("unused_parameter", "UNROLL")}


def test_a_parameter_that_a_template_argument_reads_is_used(tmp_path):
    text = YAML.replace("schema: 1", "schema: 1\ndialect: cuda").replace("--use_fast_math: UNROLL", "-G: 1")
    text = text.replace("{entry: reduce,", '{entry: "reduce<DTYPE, (bool)UNROLL>",')
    found = findings(bound(tmp_path, text), f"{SOURCE}void reduce(); void finish();")
    assert found == EXPECTED


def test_a_python_source_has_python_comments(tmp_path):
    text = YAML.replace("source: reduce.cu", "source: reduce.py\ndialect: python")
    source = "# ALGORITHM\ndef reduce(grid, block, x, partial, n):\n    return VECTOR\n"
    assert findings(bound(tmp_path, text), source) == EXPECTED | {("unused_parameter", "ALGORITHM")}


@pytest.mark.parametrize(
    "change", [("value: n}", "value: n + UNROLL}"), ("shape: [BLOCKS]", "shape: [BLOCKS + UNROLL]")]
)
def test_a_parameter_that_an_argument_reads_is_used(tmp_path, change):
    text = YAML.replace("--use_fast_math: UNROLL", "--use_fast_math: true").replace(*change)
    assert findings(bound(tmp_path, text), SOURCE) == EXPECTED


@pytest.mark.parametrize(
    ("sizes", "missing"),
    [
        ("{n: 1}, {n: 1003}", "add sizes of 63, 64 and 65"),
        ("{n: 1}, {n: 64}, {n: 127}", "add a size of 65"),  # one element is no whole tile and one more
        ("{n: 63}, {n: 640}, {n: 129}", None),
    ],
)
def test_missing_sizes_at_the_edges_of_the_largest_tile_are_found(tmp_path, sizes, missing):
    space = bound(tmp_path, YAML.replace("{n: 1}, {n: 1003}", sizes))
    found = [one.detail for one in lint(space, SOURCE, ()).mistakes if one.kind == "untried_edge"]
    assert found == [] if missing is None else found[0].endswith(missing)


@pytest.mark.parametrize(
    ("rule", "sizes", "missing"),
    [
        ("n % 4 == 0", "{n: 4}, {n: 1004}", "add sizes of 60, 64 and 68"),
        ("n % 4 == 0", "{n: 60}, {n: 640}, {n: 132}", None),
        ("n % 64 == 0", "{n: 64}", None),
        ("n % 64 == 0", "{n: 1}", "add a size of 64"),
    ],
)
def test_no_size_that_the_constraints_exclude_is_asked_for(tmp_path, rule, sizes, missing):
    text = YAML.replace("{n: 1}, {n: 1003}", sizes).replace("constraints:\n", f"constraints:\n  - {rule}\n")
    space = bound(tmp_path, text)
    mistakes = lint(space, SOURCE, constraint_report(space)).mistakes
    found = [one.detail for one in mistakes if one.kind == "untried_edge"]
    assert found == [] if missing is None else found[0].endswith(missing)
    assert rule not in [one.subject for one in mistakes]  # it is not idle: it says what n may be


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_spaces_are_verified_at_the_edges_of_their_tiles(path):
    spec = load_space(path)
    device = architecture("sm_90").device
    assert [one.placed for one in untried_edges(bind(spec, device, problem_of(spec, device)))] == []


def test_a_divisor_that_depends_on_a_size_is_no_tile(tmp_path):
    text = YAML.replace("ceil_div(n, PER_BLOCK)", "ceil_div(n, SHARE)").replace(
        "derived:\n", "derived:\n  SHARE: ceil_div(1000 * n, 64)\n"
    )
    assert not [one for one in lint(bound(tmp_path, text), SOURCE, ()).mistakes if one.kind == "untried_edge"]


@pytest.mark.parametrize("command", [("search", "--budget", "1"), ("run", "--landmarks")])
def test_a_run_begins_with_what_looks_wrong_about_the_source(folder, command, monkeypatch, capsys):
    folder.space.write_text(
        SPACE.replace("  B: [0, 1, 2]\n", "  B: [0, 1, 2]\n  ORDER: [rows, columns]\n").replace(
            "B: 0}", "B: 0, ORDER: rows}"
        )
    )
    folder.write(KERNEL.replace("B + 1.0", "B + (2.0 if ORDER == ORDER_ROW else 1.0)"))
    monkeypatch.chdir(folder.path)
    assert main([*command, "double.yaml", "--device", "fake"]) == 1
    said = capsys.readouterr().err
    warning = "ORDER_ROW: nothing defines it; did you mean ORDER_ROWS?"
    assert f"warning: double.py:3: {warning}" in said.splitlines()


def test_a_default_that_alone_is_wrong_can_be_mended_and_searched_again(folder):
    folder.write(KERNEL.replace("2 *", "(3 if A == 1 else 2) *"))
    done = folder.run("search", "double.yaml", "--device", "fake", "--budget", "1")
    assert done.returncode == 1 and "A=6 B=1 is right: look at what double.py does differently" in done.stderr
    folder.write(KERNEL)
    assert folder.run("search", "double.yaml", "--device", "fake", "--budget", "1").returncode == 0


def test_a_journal_keeps_its_trials_when_the_default_is_changed_to_a_wrong_one(folder):
    folder.write(KERNEL.replace("2 *", "(3 if A == 3 else 2) *"))
    command = ("search", "double.yaml", "--device", "fake", "--budget", "6")
    assert folder.run(*command).returncode == 0
    (journal,) = folder.path.glob("runs/*.jsonl")
    before = journal.read_text().count('"status":"ok"')
    folder.edit("default: {A: 1, B: 0}", "default: {A: 3, B: 0}")
    done = folder.run(*command)
    assert done.returncode == 1 and "is right: look at what double.py does differently" in done.stderr
    assert journal.read_text().count('"status":"ok"') >= before > 2


def test_sizes_that_checks_need_are_told_once_the_default_passes(folder):
    folder.edit("grid: [1]", 'grid: ["ceil_div(n, 16)"]')
    folder.write(KERNEL.replace("2 *", "3 *"))
    wrong = folder.run("search", "double.yaml", "--device", "fake", "--budget", "1")
    assert wrong.returncode == 1 and "verify_sizes" not in wrong.stderr
    folder.write(KERNEL)
    right = folder.run("search", "double.yaml", "--device", "fake", "--budget", "1", "--fresh")
    assert right.returncode == 0 and "warning: double.yaml:8: n: verify_sizes needs" in right.stderr


@pytest.mark.parametrize(
    ("line", "name", "meant"),
    [
        ("out[i] = blokIdx.x;", "blokIdx", "blockIdx"),
        ("__syncthread();", "__syncthread", "__syncthreads"),
        ("int width = 1; out[i] = widht;", "widht", "width"),
        ("out[i] = BLOKC;", "BLOKC", ""),  # as a macro
        ("float fmix = 0; out[i] = fmin(fmix, 1.f);", "", ""),  # a function of the language
        ("int x1 = 0; out[i] = x2;", "", ""),
    ],
)
def test_a_name_that_is_a_slip_away_from_a_known_one_is_found(tmp_path, line, name, meant):
    source = f"__global__ void k(float *out) {{ int i = threadIdx.x; {line} }}\n"
    found = dict(misspelt_names(read_kernel_source(source, {}, "cuda"), ()))
    assert found == ({name: meant} if meant else {})


def test_names_of_a_header_that_is_not_found_are_not_misspelt(tmp_path):
    source = '#include "own.h"\n__global__ void k(float *out) { int width = 1; out[width] = widths; }\n'
    assert dict(misspelt_names(read_kernel_source(source, {}, "cuda"), ())) == {}


def test_a_variable_that_a_macro_of_the_space_replaces_is_found(tmp_path):
    source = SOURCE + "KERNEL sum(GLOBAL int *x) { const int VECTOR = 4; x[VECTOR] = 1; }\n"
    assert ("hidden_variable", "VECTOR") in findings(bound(tmp_path, source=source), source)


def test_landmarks_that_repeat_others_are_named_once(tmp_path):
    repeated = YAML.replace(
        "landmarks:\n",
        "landmarks:\n  one: {BLOCK_SIZE: 32, note: on purpose}\n  two: {BLOCK_SIZE: 32}\n"
        "  three: {BLOCK_SIZE: 32}\n  four: {BLOCK_SIZE: 32}\n",
    )
    found = {one.subject: one.detail for one in lint(bound(tmp_path, repeated), SOURCE, ()).mistakes}
    assert found["three"] == (
        "the same configuration as two, and 1 more repeat others; remove what repeats another"
    )
