"""What `autotune new` writes in front of a source whose host defines some of its words."""

import pytest

from autotune.devices.listing import find_devices
from autotune.drafting.compiled_draft import compiled_scaffold
from autotune.drafting.front_matter import with_front
from autotune.drafting.space_draft import KernelFile

pytestmark = pytest.mark.skipif(not find_devices(["opencl"]), reason="no OpenCL device")

KERNEL = """
__kernel void scale(__global REAL *y, Shape shape, int n) {
    int i = get_global_id(0);
    if (i < n && i < shape.extents[2] + shape.first)
        y[i] = CONVERT_REAL(2 * y[i]);
}
"""
SHAPE = "typedef struct { int extents[3], first; } Shape;"


@pytest.fixture
def fronted(tmp_path):
    """Writes a source, and returns the text in front of it and what a compiler says then."""

    def done(text, **neighbours):
        for name, own in {"shape": SHAPE, **neighbours}.items():
            (tmp_path / f"{name}.h").write_text(own)
        path = tmp_path / "scale.cl"
        path.write_text(text)
        kernel = KernelFile(path, "scale", "scale.py")
        found = with_front(kernel, compiled_scaffold(kernel), tmp_path / "scale_front.cl")
        return ("", "") if found is None else (found[0].front, found[1].complaint)

    return done


def test_a_structure_is_that_of_a_neighbour_and_a_conversion_is_opencls_own(fronted):
    front, complaint = fronted(KERNEL)
    assert '#include "shape.h"' in front and front.endswith('#include "scale.cl"\n')
    assert "#define CONVERT_REAL(value) convert_float(value)" in front and complaint == ""


def test_a_function_that_two_neighbours_define_is_that_of_the_first(fronted):
    one = "float twice(float x) { return x + x; }"
    text = KERNEL.replace("2 * y[i]", "twice(y[i])")
    front, complaint = fronted(text, a=one, b=one)
    assert '#include "a.h"' in front and front.count("#include") == 3 and complaint == ""


def test_of_two_neighbours_the_one_whose_function_takes_what_is_passed_is_included(fronted):
    one = "float twice(float x) { return x + x; }"
    two = "float twice(float x, float y) { return x + y; }"
    three = two.replace("float y", "OTHER y")
    front, complaint = fronted(KERNEL.replace("2 * y[i]", "twice(y[i], y[i])"), a=one, b=two, c=three)
    assert '#include "b.h"' in front and front.count("#include") == 3 and complaint == ""


def test_a_word_that_a_neighbour_asks_for_and_uses_as_a_number_is_one(fronted):
    one = "#ifdef AXIS\nint first(Shape shape) { return shape.extents[AXIS]; }\n#endif\n"
    front, complaint = fronted(KERNEL.replace("shape.first", "first(shape)"), a=one)
    assert "#define AXIS 1" in front and complaint == ""


def test_what_the_host_leaves_out_needs_no_file(fronted):
    assert fronted("__kernel void f(__global float *y) { y[0] = unknown(1); }") == ("", "")


@pytest.mark.parametrize(
    ("called", "given"),
    [
        ("OP(y[1], (REAL)(2))", "#define OP(value0, value1) ((value0) + (value1))"),
        ("CONVERT_OUTPUT(y[1])", "#define CONVERT_OUTPUT(value0) ((value0))"),
    ],
)
def test_a_function_in_capitals_that_no_file_has_adds_what_it_takes(fronted, called, given):
    front, complaint = fronted(f"__kernel void f(__global REAL *y) {{ y[0] = {called}; }}")
    assert given in front and complaint == ""


def test_a_type_of_the_source_that_is_called_as_that_of_the_search_is_its_own(fronted):
    front, complaint = fronted("typedef REAL DTYPE;\n__kernel void f(__global DTYPE *y) { y[0] = y[1]; }")
    assert "#undef DTYPE" in front and complaint == ""


def test_of_two_neighbours_the_one_that_defines_more_comes_first_with_what_its_condition_asks_for(fronted):
    one = "float twice(float x) { return x + x; }\n"
    two = (
        "#ifdef ADD\nfloat twice(float x) { return x + x; }\nfloat more(float x) { return x + 1; }\n#endif\n"
    )
    text = KERNEL.replace("2 * y[i]", "twice(more(y[i]))")
    front, complaint = fronted(text, a=one, b=f"#ifdef MUL\n{one}#endif\n{two}")
    assert "#define ADD 1" in front and '#include "b.h"' in front and "a.h" not in front and complaint == ""


def test_a_neighbour_is_included_once_whatever_conditions_its_parts_have(fronted):
    one = "float twice(float x) { return x + x; }\n"
    two = f"#if WIDE\n{one}#else\n{one}#endif\n#ifdef ADD\nfloat more(float x) {{ return x + 1; }}\n#endif\n"
    front, complaint = fronted(KERNEL.replace("2 * y[i]", "twice(more(y[i]))"), a=two)
    assert front.count('#include "a.h"') == 1 and "#define ADD 1" in front and "WIDE" not in front
    assert complaint == ""


def test_no_file_includes_itself_after_a_neighbour_that_cannot_be_included(fronted):
    one = f"#ifdef AXIS\n{SHAPE}\n#endif\n{SHAPE}\nint first(Shape shape) {{ return shape.extents[AXIS]; }}\n"
    front, _ = fronted(KERNEL.replace("shape.first", "first(shape)"), a=one)
    assert "scale_front.cl" not in front


def test_a_neighbour_that_only_defines_a_word_for_kernels_is_included(fronted):
    one = "#define KERNEL __kernel\nfloat twice(float x) { return x + x; }"
    front, complaint = fronted(KERNEL.replace("2 * y[i]", "twice(y[i])"), a=one)
    assert '#include "a.h"' in front and complaint == ""
