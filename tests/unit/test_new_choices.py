"""`autotune new` finds by compiling what a source in OpenCL C needs of its host."""

import pytest

from autotune.devices.listing import find_devices
from autotune.drafting.compiled_draft import KernelFile, compiled_scaffold
from autotune.drafting.draft_steps import compiled
from autotune.drafting.front_matter import with_front

pytestmark = pytest.mark.skipif(not find_devices(["opencl"]), reason="no OpenCL device")
FILL = "__kernel void fill(__global float *y) { y[get_global_id(0)] = VALUE; }\n"


@pytest.fixture
def drafted(tmp_path):
    """Draft a space for files, of which the last is the source."""

    def draft(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("_", ".")
            path.write_text(text)
        return compiled_scaffold(KernelFile(path, path.stem, f"{path.stem}.py"))

    return draft


@pytest.mark.parametrize(
    "text",
    [
        "global float table[8];\nkernel void fill(global float *y) { y[0] = table[0]; }",
        "kernel void fill(global float *y) { y[0] = work_group_reduce_add(y[0]); }",
        "kernel void fill(global float *y) { float *first = y; first[0] = 1; }",
    ],
)
def test_a_source_of_a_newer_opencl_is_compiled_as_such(drafted, text):
    draft = drafted(fill_cl=text)
    assert (draft.complaint, draft.option) == ("", "-cl-std=CL2.0")
    assert """  opencl: {-cl-std: "'CL2.0'"}\n""" in draft.space


def test_an_error_that_a_newer_opencl_has_too_leaves_the_usual_one(drafted):
    draft = drafted(fill_cl="__kernel void fill(__global float *y) { y[0] = missing(); }")
    assert draft.complaint and not draft.option and "-cl-std" not in draft.space


def test_what_a_header_demands_of_the_host_is_defined(drafted):
    header = "#if OF_HALVES\n#define VALUE 2\n#elif OF_WORDS\n#define VALUE 1\n#else\n#error which?\n#endif\n"
    draft = drafted(own_h=header, fill_cl=f'#include "own.h"\n{FILL}')
    assert draft.complaint == "" and """{-DOF_HALVES: "'1'"}""" in draft.space


def test_a_draft_stays_where_another_definition_leaves_no_kernel(drafted):
    text = (
        "#if OF_TEXT\n#define VALUE 1\n#define LESS\n#endif\n#ifndef LESS\n"
        f"{FILL.replace('VALUE', 'VALUE + missing()')}#endif\n"
    )
    assert "missing" in drafted(fill_cl=text).complaint


def test_a_type_that_macros_put_together_is_there_by_the_branch_that_has_its_parts(drafted):
    header = """
        #ifdef OF_FLOATS
        #define REAL float
        #define LETTER f
        #endif
        #define JOINED(a, b) a##b
        #define JOIN(a, b) JOINED(a, b)
        #define REAL4 JOIN(REAL, 4)
        REAL4 first(REAL4 x) { return x; }
        #define conf convert_float4
        REAL4 last(REAL4 x) { return JOIN(con, LETTER)(x); }
        """
    draft = drafted(own_h=header, fill_cl=f'#include "own.h"\n{FILL.replace("VALUE", "1")}')
    assert draft.complaint == "" and """{-DOF_FLOATS: "'1'"}""" in draft.space


def test_a_variable_that_a_macro_declares_in_one_branch_is_there_by_that_branch(drafted):
    text = """
        #if WITH_SUM
        #define FIND_SUM __global float *sum = y + 1;
        #else
        #define FIND_SUM
        #endif
        #if CLEARS
        __kernel void fill(__global float *y) { FIND_SUM; sum[0] = 0; }
        #endif
        """
    draft = drafted(fill_cl=text)
    assert draft.complaint == ""
    assert draft.kernel.types == {"CLEARS": "1", "WITH_SUM": "1"}


@pytest.mark.parametrize(
    ("directives", "declared"),
    [
        ("#if COUNT < STEPS\n#define LESS\n#endif\n", "y[0] = COUNT;"),
        ("#if (COUNT / STEPS) * STEPS == COUNT\n#endif\n", "y[0] = 1;"),
        ("#define SPAN (COUNT + STEPS - 1)\n#if SPAN / STEPS > 2\n#endif\n", "float part[SPAN];"),
    ],
)
def test_a_macro_that_conditions_reckon_with_is_a_number(drafted, directives, declared):
    draft = drafted(
        fill_cl=f"{directives}__kernel void fill(__global float *y) {{ {declared} y[STEPS] = 1; }}"
    )
    assert draft.complaint == ""
    assert {draft.guess.launch.default[name] for name in ("COUNT", "STEPS")} == {1}


def test_an_array_of_another_kernel_has_elements_too(drafted):
    other = "__kernel void other(__global float *y) { float part[SPAN - 1]; y[0] = part[0]; }"
    draft = drafted(fill_cl=f"{FILL.replace('VALUE', '1')}{other}")
    assert draft.complaint == "" and draft.guess.launch.default["SPAN"] == 2


@pytest.mark.parametrize("index", ["(ROWS) * i", "((ROWS * (COLUMNS)) - 1) * i", "(ROWS) - i + 9"])
def test_a_number_in_brackets_before_another_is_no_type(drafted, index):
    draft = drafted(
        fill_cl=f"__kernel void fill(__global float *y) {{ int i = get_local_id(0); y[{index}] = 1; }}"
    )
    assert draft.complaint == "" and draft.guess.launch.default["ROWS"] == 1


@pytest.mark.parametrize("cast", ["(REAL)-1", "(REAL)*x", "(float4)(*x).x"])
def test_a_type_in_brackets_before_a_value_is_one(drafted, cast):
    draft = drafted(fill_cl=f"__kernel void fill(__global REAL *y, __global REAL *x) {{ y[0] = {cast}; }}")
    assert draft.complaint == "" and draft.kernel.types == {"REAL": "float"}


def test_a_kernel_that_cannot_be_read_is_refused_with_what_the_compiler_says(folder):
    (folder.path / "square.cl").write_text("__kernel void square(__global *x) { x[0] = x[0] * x[0]; }\n")
    done = folder.run("new", "square.cl")
    expected = "autotune: square.cl:1: the kernel that begins here cannot be read: square.cl:1:"
    assert done.returncode == 2 and done.stderr.startswith(expected)
    assert "error: type specifier missing" in done.stderr and "--define" in done.stderr


@pytest.mark.parametrize(
    ("text", "meanings"),
    [
        ("__kernel void fill(SPACE float *y) { y[0] = 1; }", {"SPACE": "__global"}),
        ("__kernel void fill(SPACE const REAL *x, SPACE REAL *y) { y[0] = x[0]; }", {"SPACE": "__global"}),
        ("__kernel void fill(__global float *ALONE y) { y[0] = 1; }", {"ALONE": ""}),
        ("__kernel void fill(__global float *y, int n MORE) { y[n] = 1; }", {"MORE": ""}),
        ("__kernel void fill(__global float *y MORE) { y[0] = 1; }", {"MORE": ""}),
        ("__kernel void fill(__global float *y) { GROUP int t[8]; y[0] = t[0] = 1; }", {"GROUP": "__local"}),
        ("__kernel void fill(__global float *y) { SPACE float *z = y; z[0] = 1; }", {"SPACE": "__global"}),
        (
            "TABLE int t[] = {1, 2};\n__kernel void fill(__global int *y) { y[0] = t[1]; }",
            {"TABLE": "__constant"},
        ),
        (
            "INLINE int f(SPACE int *y) { return y[0]; } __kernel void fill(SPACE int *y) { y[1] = f(y); }",
            {"INLINE": "", "SPACE": "__global"},
        ),
    ],
)
def test_a_word_beside_a_type_or_a_name_is_what_can_stand_there(drafted, text, meanings):
    draft = drafted(fill_cl=text)
    assert draft.complaint == "" and draft.kernel.types | meanings == draft.kernel.types
    assert {one.name for one in draft.kernel.arguments} <= {"x", "y", "n"}


def test_a_type_that_another_folder_of_the_repository_defines_is_included_from_there(tmp_path):
    for name in (".git", "types/plain", "kernels"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "types" / "plain" / "point.cl").write_text("typedef struct { real x; int kind; } Point;\n")
    (tmp_path / "types" / "real.cl").write_text("typedef float real;\n")
    source = tmp_path / "kernels" / "fill.cl"
    source.write_text("__kernel void fill(__global Point *y) { y[0].kind = 1; }\n")
    kernel, front = KernelFile(source, "fill", "fill.py"), source.with_name("fill_front.cl")
    found = with_front(kernel, compiled_scaffold(kernel), front)
    assert found and '#include "../types/plain/point.cl"\n' in front.read_text()


def test_a_draft_names_the_types_that_nothing_defines(drafted, tmp_path):
    drafted(fill_cl="__kernel void fill(__global Point *y) { y[0].kind = 1; }\n")
    kernel = KernelFile(tmp_path / "fill.cl", "fill", "fill.py")
    draft = compiled(kernel, "", tmp_path / "fill_front.cl", 60.0)
    assert draft.complaint.startswith(
        "nothing defines the type Point; no file around fill.cl defines Point: "
    )


def test_a_macro_that_a_branch_defines_is_had_by_what_that_branch_asks_for(drafted):
    text = """
        #ifdef OF_SQUARES
        #define VALUE(x) ((x) * (x))
        #elif defined OF_SUMS
        #define VALUE(x) ((x) + (x))
        #endif
        #ifdef VALUE
        __kernel void fill(__global float *y) { y[get_global_id(0) / gColumns] = VALUE(y[0]); }
        #endif
        """
    draft = drafted(fill_cl=text)
    assert draft.complaint == "" and draft.guess.launch.default["OF_SQUARES"] is True
    assert draft.guess.launch.default["gColumns"] == 1


def test_a_block_that_is_a_multiple_of_a_macro_has_no_more_threads_than_a_block_can(drafted):
    draft = drafted(
        fill_cl=f"__attribute__((reqd_work_group_size(SIZE * 16, 1, 1))) {FILL.replace('VALUE', '1')}"
    )
    (size,) = draft.guess.launch.parameters
    assert (size.values, size.default, size.remark) == ((32, 64), 64, "no block has more than 1,024 threads")


def test_local_memory_that_a_device_does_not_have_is_told_with_its_size(folder):
    body = "__local int a[4096][4096]; int i = get_global_id(0); a[i][0] = i; y[i] = a[0][i];"
    (folder.path / "fill.cl").write_text(f"__kernel void fill(__global int *y) {{ {body} }}")
    done = folder.run("new", "fill.cl")
    assert "it takes 67,108,864 bytes of local memory, and the device has " in done.stdout


def test_a_type_of_c_that_opencl_lacks_is_an_option_without_spaces(drafted):
    text = "__kernel void fill(__global float *y, uchar length) { uint32_t i = length; y[i] = 1; }"
    draft = drafted(fill_cl=text)
    assert (draft.complaint, draft.kernel.types) == ("", {"uint32_t": "uint"})
    assert draft.guess.launch.sizes == ("n",)  # 8 bits are no size
