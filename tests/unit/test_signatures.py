"""The launch plan's arguments against the parameters in the source: number, order and types."""

import pytest

from autotune.space import bind, lint_source, load_space, problem_of
from tests.space_example import GPU, YAML, write_space

FINISH = "KERNEL void finish(GLOBAL const DTYPE *partial, GLOBAL DTYPE *sum)\n{\n}\n"
REDUCE = "KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1) reduce({})\n{{\n}}\n"
RIGHT = "GLOBAL const DTYPE *RESTRICT x, GLOBAL DTYPE *partial, const int n"

WRONG = {
    "one too few": (
        "GLOBAL DTYPE *x, GLOBAL DTYPE *partial",
        "plan passes (x, partial, n): 2 parameters and 3 arguments, n is not expected",
    ),
    "one too few with other names": (
        "GLOBAL DTYPE *a, GLOBAL DTYPE *b",
        "plan passes (x, partial, n): 2 parameters and 3 arguments, n is not expected",
    ),
    "one too many with other names": (
        "GLOBAL DTYPE *a, GLOBAL DTYPE *b, int c, int d",
        "plan passes (x, partial, n): 4 parameters and 3 arguments, d is missing",
    ),
    "the name of a parameter of the space": (
        "GLOBAL DTYPE *x, GLOBAL DTYPE *partial, int BLOCK_SIZE",
        "parameter 3 of reduce; give this parameter another name, such as n",
    ),
    "none at all": ("void", "reduce takes () in the source, but"),
    "another order": (
        "GLOBAL DTYPE *partial, GLOBAL DTYPE *x, int n",
        "(partial, x, n) in the source, but the launch plan passes (x, partial, n); write [partial, x, n]",
    ),
    "a number for an array": (
        "GLOBAL DTYPE *x, GLOBAL DTYPE *partial, GLOBAL int *n",
        "3 of reduce is `GLOBAL int *n` in the source, but the launch plan passes the number n of int32",
    ),
    "an array for a number": (
        "const DTYPE a, GLOBAL DTYPE *partial, int n",
        "1 of reduce is `const DTYPE a` in the source, but the launch plan passes the array x of int32",
    ),
    "a wider number": (
        "GLOBAL DTYPE *x, GLOBAL DTYPE *partial, unsigned long n",
        "is `unsigned long n` in the source, but the launch plan passes the number n of int32; "
        "write dtype: uint64",
    ),
    "an array of another type": (
        "GLOBAL const float *x, GLOBAL DTYPE *partial, int n",
        "reduce is `GLOBAL const float *x` in the source, but the launch plan passes the array x of int32",
    ),
}
NOT_JUDGED = {
    "as declared": RIGHT,
    "other names": "GLOBAL DTYPE *a, GLOBAL DTYPE *b, unsigned int count",
    "vectors": "GLOBAL const float4 *x, GLOBAL void *partial, int n",
    "aliases": "GLOBAL const real *x, GLOBAL real *partial, count_t n",
    "a macro": "ARGUMENTS",
    "a directive": "GLOBAL DTYPE *x\n#if BLOCK_SIZE > 64\n, int more\n#endif\n",
}
CPP = YAML.replace("schema: 1", "schema: 1\ndialect: cuda").replace("[int32, float32]", "[float32, int32]")
TEMPLATE = "namespace lin {{\ntemplate <typename T, int N = 4>\n__global__ void reduce({})\n{{\n}}\n}}\n"
GENERIC = "const T *__restrict__ x, T *partial, int n"
IN_CPP = {  # the source, and what is said about it; None if it fits
    "a template": (TEMPLATE.format(GENERIC), None),
    "types of other templates": (
        TEMPLATE.format("array<T, N> *x, typename U<T>::type *partial, std::int32_t n"),
        None,
    ),
    "a number with a default": (TEMPLATE.format("T *x, T *partial, int n = N"), None),
    "one overload": (TEMPLATE.format("T *x") + TEMPLATE.format(GENERIC), None),
    "a function of the host": (TEMPLATE.format(GENERIC) + "void reduce(int a)\n{\n}\n", None),
    "no overload": (
        TEMPLATE.format("T *x") + TEMPLATE.format("T *x, T *y"),
        "reduce takes (x) in the source",
    ),
    "one too few": (TEMPLATE.format("T *x, T *partial"), "2 parameters and 3 arguments, n is not expected"),
    "another order": (TEMPLATE.format("T *partial, const T *x, int n"), "write [partial, x, n]"),
    "a wider number": (TEMPLATE.format("T *x, T *partial, std::size_t n"), "write dtype: uint64"),
    "the type of the template": (TEMPLATE.format("T *x, T *partial, T n"), "passes the number n of int32"),
    "its argument": (
        TEMPLATE.format("T *x, T *partial, T n"),
        "3 of reduce is `T n` with T = DTYPE in the source",
    ),
    "a number for an array": (TEMPLATE.format("T *x, T *partial, array<T, N> *n"), "the number n of int32"),
}


def findings(folder, source, text=None):
    path = write_space(folder, **({"text": text} if text else {}), source=source)
    spec = load_space(path)
    space = bind(spec, GPU, problem_of(spec, GPU))
    return [item for item in lint_source(space, source) if item.kind == "signature"]


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_found(tmp_path, case):
    parameters, words = WRONG[case]
    (found,) = findings(tmp_path, REDUCE.format(parameters) + FINISH)
    assert words in found.detail
    *_, line = found.place.split(":")
    named = (tmp_path / ("reduce.cu" if case.startswith("the name") else "reduce.yaml")).read_text()
    assert found.subject.rpartition(".")[2] in named.splitlines()[int(line) - 1]


@pytest.mark.parametrize("case", NOT_JUDGED)
def test_what_fits_or_cannot_be_read_is_not_found(tmp_path, case):
    assert not findings(tmp_path, REDUCE.format(NOT_JUDGED[case]) + FINISH)


@pytest.mark.parametrize("case", IN_CPP)
def test_templates_in_namespaces_are_judged_too(tmp_path, case):
    source, words = IN_CPP[case]
    text = CPP.replace("entry: reduce,", 'entry: "lin::reduce<DTYPE, VECTOR>",')
    found = findings(tmp_path, source + FINISH, text)
    assert [words in item.detail for item in found] == ([True] if words else [])


def test_a_plain_kernel_in_a_namespace_is_judged(tmp_path):
    source = f"namespace lin {{\n{REDUCE.format('int a')}}}\n{FINISH}"
    (found,) = findings(tmp_path, source, CPP.replace("entry: reduce,", "entry: lin::reduce,"))
    assert found.detail.startswith(
        "reduce takes (a) in the source, but the launch plan passes (x, partial, n)"
    )


@pytest.mark.parametrize(
    "source",
    [
        "void other() { reduce(a); }\n",
        f"{REDUCE.format('int a')}{REDUCE.format(RIGHT)}",
        "template <int N> __global__ void reduce(int a) {}\n",
    ],
    ids=["a call", "one definition of two fits", "a template"],
)
def test_what_may_not_be_the_kernel_is_not_judged(tmp_path, source):
    assert not findings(tmp_path, source + FINISH)


def test_a_kernel_that_is_not_there_is_told_with_those_that_are(tmp_path):
    (found,) = findings(tmp_path, REDUCE.format(RIGHT) + FINISH.replace("finish", "finnish"))
    assert found.subject == "launch[1].entry"
    assert found.detail == "the source has no kernel finish; did you mean finnish?"


@pytest.mark.parametrize(
    ("made", "count"), [("fin##name##sh", 0), ("name##sh", 1), ("a##b", 1), ("name##_2", 1)]
)
def test_a_kernel_may_have_a_name_that_a_macro_makes(tmp_path, made, count):
    macro = f"#define MAKE(name) KERNEL {made}(GLOBAL const DTYPE *partial, GLOBAL DTYPE *sum)\n"
    assert len(findings(tmp_path, macro + REDUCE.format(RIGHT) + "MAKE(i) {}\n")) == count


def test_two_launches_may_swap_their_arrays(tmp_path):
    source = REDUCE.format(RIGHT) + FINISH
    text = write_space(tmp_path).read_text()
    swapped = text.replace(
        "compiler_options:",
        "  - {entry: finish, grid: [1], block: [32], arguments: [sum, partial]}\ncompiler_options:",
    )
    assert swapped != text and not findings(tmp_path, source, swapped)


def test_a_search_says_it_before_the_first_trial(folder):
    folder.write("def double(grid, block, y, x, n):\n    y.view('int32')[:n] = 2 * x.view('int32')[:n]\n")
    done = folder.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 1
    warning = "warning: double.yaml:24: launch[0].arguments: double takes (y, x, n) in the source, but "
    assert warning in done.stderr and done.stderr.index(warning) < done.stderr.index("wrong_result")
