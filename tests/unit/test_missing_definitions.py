"""What `autotune new` says of a function that the compiler does not find."""

import pytest

from autotune.analysis.missing_definitions import what_helps

UNKNOWN = "error: k.cl:1:9: implicit declaration of function 'twice' is invalid in OpenCL"


@pytest.fixture
def source(tmp_path):
    (tmp_path / "k.cl").write_text("__kernel void f(__global int *x) { x[0] = twice(x[1]) + other; }")
    return tmp_path / "k.cl"


@pytest.mark.parametrize(
    "text", ["int twice(int x)\n{ return 2 * x; }", "#define twice(x) (2 * (x))"], ids=["function", "macro"]
)
def test_the_file_that_defines_a_function_is_named(source, text):
    (source.parent / "common").mkdir()
    (source.parent / "common" / "a.h").write_text("int twice(int x); // twice(x) {")
    (source.parent / "common" / "b.opencl").write_text(text)
    said = what_helps(UNKNOWN, source)
    assert said == '; common/b.opencl defines twice: write #include "common/b.opencl" at the top of k.cl'


def test_a_function_that_no_file_beside_the_source_defines_is_asked_for(source):
    expected = (
        "; no file beside k.cl defines twice: write it, or #include the file that does, at the top of k.cl"
    )
    assert what_helps(UNKNOWN, source) == expected
    assert what_helps("error: use of undeclared identifier 'other'", source) == ""
    assert what_helps("error: expected ')'", source) == ""


@pytest.mark.parametrize(
    ("complaint", "extension"),
    [
        ("error: implicit declaration of function 'sub_group_reduce_add' is invalid", "cl_khr_subgroups"),
        ("error: implicit declaration of function 'get_sub_group_id' is invalid", "cl_khr_subgroups"),
        ("error: declaring variable of type 'half' requires cl_khr_fp16", "cl_khr_fp16"),
    ],
)
def test_what_the_device_lacks_is_named(source, complaint, extension):
    assert f"it needs a device with {extension}" in what_helps(complaint, source)


@pytest.mark.parametrize(
    "text",
    [
        "typedef float4 point;",
        "struct point { int x; };",
        "typedef struct { int x; } point;",
        "#define point int",
    ],
)
def test_the_file_that_defines_a_type_is_named(source, text):
    (source.parent / "types.cl").write_text(text)
    complaint = "error: member reference base type 'float' is not a structure"
    said = what_helps(complaint, source, ["point"])
    assert said == '; types.cl defines point: write #include "types.cl" at the top of k.cl'
    assert "no file beside k.cl defines pint" in what_helps(complaint, source, ["pint"])


def test_the_first_error_says_which_extension_is_needed(source):
    complaint = "error: half requires cl_khr_fp16\nerror: implicit declaration of function 'get_sub_group_id'"
    assert "cl_khr_fp16" in what_helps(complaint, source)
