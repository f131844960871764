"""What is said of a default configuration that fails: the places to look at, in the order of suspicion."""

import shutil
from dataclasses import replace

import pytest

from autotune.compilers.source_text import read_source
from autotune.core.trials import ArrayFault, Failure, Status, Trial
from autotune.devices import Address
from autotune.sources.kernel_source import read_kernel_source
from autotune.sources.loops import loops_of
from autotune.space import bind, load_space, problem_of
from autotune.tuning.failed_default import failed_default
from autotune.tuning.task import TuningTask
from tests.conftest import ROOT
from tests.space_example import GPU

LOOPS = """\
    for (unsigned int k = 0; k < WORK_PER_THREAD; k++) {
        const unsigned int i = first + k * step;
        while (i < BLOCK_INDEX(x)) {}
        for (unsigned int j = 0; j < n; j + 1) {}
        BARRIER();
        while (true) {}
"""


@pytest.fixture
def task(tmp_path):
    shutil.copytree(ROOT / "tests/golden/newcomer", tmp_path, dirs_exist_ok=True)
    source = (tmp_path / "axpy.cu").read_text().split("\n")
    (tmp_path / "axpy.cu").write_text("\n".join([*source[:14], *LOOPS.splitlines(), *source[16:]]))
    spec = load_space(tmp_path / "axpy.yaml")
    space = bind(spec, GPU, problem_of(spec, GPU))
    return TuningTask(Address("fake", 0), GPU, spec, read_source(spec.source), space)


def _wrong(config, found, expected):
    fault = ArrayFault("result", {"n": 9}, "result[3]", found, expected)
    return Trial(config, "", Failure(Status.WRONG_RESULT, "", fault=fault))


def test_a_kernel_that_does_not_end_is_told_with_three_loops_the_most_suspect_first(task):
    found = failed_default(task, Trial(task.spec.default, "", Failure(Status.TIMEOUT, "did not end")))
    loops, barrier, limit = found.helps
    assert loops == (
        "make sure that each loop ends: axpy.cu:17 `while (i < BLOCK_INDEX(x))`, "
        "axpy.cu:18 `for (unsigned int j = 0; j < n; j + 1)`, axpy.cu:20 `while (true)`"
    )
    assert barrier.endswith("reaches each BARRIER()") and "--timeout" in limit


@pytest.mark.parametrize("log", ["axpy.cu:17:9: error: expected ';'", 'axpy.cu(17): error: expected a ";"'])
def test_the_line_that_a_compiler_refuses_is_shown(task, log):
    found = failed_default(task, Trial(task.spec.default, "", Failure(Status.COMPILE_ERROR, log)))
    (line,) = found.helps
    assert line.startswith("look at axpy.cu") and line.endswith("`while (i < BLOCK_INDEX(x)) {}`")


@pytest.mark.parametrize(
    ("code", "looks_endless"),
    [
        ("for (;;)\n;", True),
        ("for (;;) if (n) break;", False),
        ("for (unsigned int k = n;\n k; k >>= 1);", False),
        ("do {} while (n);", True),
        ("unsigned int k = n; do { k--; } while (k);", False),
        ("unsigned int k = n; while (k--);", False),
        ("while (flags[n]);", False),  # another thread may change it
    ],
)
def test_a_loop_in_which_nothing_changes_that_it_tests_looks_endless(code, looks_endless):
    code += " for (int one : {1, 2});"
    body = f"#if 0\nwhile (1);\n#endif\n{code}"
    source = f"__global__ void f(volatile const int *flags, unsigned int n) {{\n{body} // for (;;)\n}}"
    (loop,) = loops_of(read_kernel_source(source))
    assert loop.looks_endless == looks_endless and source[loop.place :].startswith(loop.head.split()[0])


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        (
            (Status.WRONG_RESULT, Status.OK),
            "ORDER=contiguous is right: look at what axpy.cu does differently",
        ),
        ((Status.WRONG_RESULT, Status.CRASHED), "is wrong too: look for races first, with"),
        ((Status.CRASHED, Status.CRASHED), None),
    ],
)
def test_a_wrong_result_names_both_sides_and_the_one_that_other_configurations_speak_against(
    task, statuses, said
):
    wrong = _wrong(task.spec.default, "1.0", "2.0")
    rows = zip((0, len(task.space) - 1), statuses, strict=True)
    others = [
        Trial(task.space.config(row), "", None if status is Status.OK else Failure(status, ""))
        for row, status in rows
    ]
    sides, number, *more = failed_default(task, wrong, others).helps
    assert sides == (
        "for result[3], the kernel at axpy.cu:5 gave 1.0 and `reference` in axpy.py 2.0: correct the one "
        "that is wrong"
    )
    assert number.endswith("the kernel gets a=2.5: axpy.py has to compute with the same number")
    assert [said in one for one in more] == [True] if said else not more


@pytest.mark.parametrize(("found", "expected", "is_told"), [("nan", "2.0", True), ("inf", "inf", False)])
def test_a_result_that_is_no_number_speaks_for_memory_that_was_not_written(task, found, expected, is_told):
    wrong = _wrong(task.spec.default, found, expected)
    *_, told = failed_default(task, wrong, [wrong]).helps
    assert told.startswith("nan and inf come from") == is_told and ("is wrong too" in told) != is_told


@pytest.mark.parametrize("value", ["ceil_div(n, BLOCK_SIZE)", "BLOCKS"])
def test_a_number_that_depends_on_the_configuration_is_none_of_the_references(task, value):
    *others, factor, length = task.spec.arguments
    spec = replace(
        task.spec,
        arguments=(*others, replace(factor, value=value), length),
        derived={"PER_BLOCK": "BLOCK_SIZE * WORK_PER_THREAD", "BLOCKS": "ceil_div(n, PER_BLOCK)"},
    )
    changed = replace(task, spec=spec, space=bind(spec, GPU, problem_of(spec, GPU)))
    wrong = _wrong(spec.default, "1.0", "2.0")
    assert not [text for text in failed_default(changed, wrong).helps if "has to compute with" in text]


def test_a_cause_without_advice_is_told_as_the_cause(task):
    text = task.source.text.replace("const unsigned int n", "GLOBAL const unsigned int *n")
    changed = replace(task, source=replace(task.source, text=text))
    found = failed_default(changed, Trial(task.spec.default, "", Failure(Status.LAUNCH_ERROR, "refused")))
    assert found.cause.startswith("arguments[4].dtype: parameter 5 of axpy is") and not found.helps


def test_a_parameter_that_the_source_replaces_is_not_told_as_undefined(task):
    text = f"#define WORK_PER_THREAD(x) x\n{task.source.text}"
    changed = replace(task, source=replace(task.source, text=text))
    said = "axpy.cu:14:17: use of undeclared identifier 'WORK_PER_THREAD'"
    found = failed_default(changed, Trial(task.spec.default, "", Failure(Status.COMPILE_ERROR, said)))
    assert found.cause == "WORK_PER_THREAD: this `#define` replaces the values of the parameter"


def test_a_likely_mistake_in_the_space_is_told_also_if_the_default_fails(folder):
    folder.write("def double(grid, block, x, y, n):\n    raise RuntimeError('broken')\n    return A\n")
    done = folder.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 1
    assert "B: declared, but not used" in " ".join(done.stderr.split())
    assert done.stderr.index("warning:") < done.stderr.index("autotune: ")
