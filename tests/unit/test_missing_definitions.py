"""What `autotune new` says of a function that the compiler does not find."""

from pathlib import Path

import pytest

from autotune.compilers.base import undefined_names
from autotune.drafting.missing_definitions import what_helps

PLACES = {"/opt/cuda/include/cuda_bf16.h(3)": "a", "k.cu(1)": "b"}
UNKNOWN = "error: k.cl:1:9: implicit declaration of function 'twice' is invalid in OpenCL"


def helps(complaint, source, *others):
    return what_helps(complaint, source, source.read_text(), *others)


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
    said = helps(UNKNOWN, source, "opencl")
    assert said == '; common/b.opencl defines twice: write #include "common/b.opencl" at the top of k.cl'


def test_a_macro_that_is_called_is_asked_for_as_one(source):
    source.write_text("__kernel void f(__global int *x) { x[0] = TWICE(x[1]); }")
    said = helps(UNKNOWN.replace("twice", "TWICE"), source, "opencl")
    assert said == (
        "; no file around k.cl defines TWICE, which the host may give: write #define TWICE(...) at the "
        "top of k.cl"
    )


def test_of_several_files_that_define_a_function_none_is_preferred(source):
    for name in ("add.cl", "multiply.cl"):
        (source.parent / name).write_text("int twice(int x) { return 2 * x; }")
    said = helps(UNKNOWN, source, "opencl")
    assert said == (
        "; add.cl and multiply.cl define twice: write an #include of the right one at the top of k.cl"
    )


def test_a_function_that_no_file_beside_the_source_defines_is_asked_for(source):
    expected = (
        "; no file around k.cl defines twice: write it, or #include the file that does, at the top of k.cl"
    )
    assert helps(UNKNOWN, source, "opencl") == expected
    other = "; if the host defines other: --define other=VALUE"
    assert helps("error: use of undeclared identifier 'other'", source, "opencl") == other
    assert helps("error: expected ')'", source, "opencl") == ""
    assert "; a fault of this device's compiler" in helps("the compiler crashed: SIGSEGV", source, "opencl")


@pytest.mark.parametrize(
    "complaint",
    [
        "JIT session error: Symbols not found: [ twice ]",
        "JIT session error: Symbols not found: [ _Z5twiceDv4_f, _Z4lastf ]",
        "Unresolved extern function 'twice'",
    ],
)
def test_a_function_that_is_only_declared_is_asked_for(source, complaint):
    assert "no file around k.cl defines twice: write it" in helps(complaint, source, "opencl")


def test_a_word_that_another_error_makes_unknown_is_not_asked_for(source):
    complaint = "k.cl:1: error: expected ';'\nk.cl:2: error: use of undeclared identifier 'twice'"
    assert not helps(complaint, source, "opencl")


@pytest.mark.parametrize(
    ("complaint", "extension"),
    [
        ("error: implicit declaration of function 'sub_group_reduce_add' is invalid", "cl_khr_subgroups"),
        ("error: implicit declaration of function 'get_sub_group_id' is invalid", "cl_khr_subgroups"),
        ("error: declaring variable of type 'half' requires cl_khr_fp16", "cl_khr_fp16"),
        ("error: use of undeclared identifier 'intel_sub_group_dpas'", "the extension of Intel that has it"),
        ("error: implicit declaration of function 'atom_inc' is invalid", "cl_khr_int64_base_atomics"),
        ("error: implicit declaration of function 'atom_max' is invalid", "cl_khr_int64_extended_atomics"),
        (
            "warning: unsupported OpenCL extension 'cl_intel_channels'\nerror: no such address space",
            "cl_intel_channels",
        ),
    ],
)
def test_what_the_device_lacks_is_named(source, complaint, extension):
    assert f"it needs a device with {extension}" in helps(complaint, source, "opencl")


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
    said = helps(complaint, source, "opencl", ["point"])
    assert said == '; types.cl defines point: write #include "types.cl" at the top of k.cl'
    assert "no file around k.cl defines pint" in helps(complaint, source, "opencl", ["pint"])


@pytest.mark.parametrize(
    "why", ["invalid output constraint '=v' in asm", "use of undeclared identifier 'asm'"]
)
def test_assembly_of_another_device_is_named(source, why):
    said = helps(f"k.cl:1:9: error: {why}", source, "opencl")
    assert said == "; it is in the assembly of another device: search on that one, or write it in C"


def test_a_kernel_that_waits_for_those_it_launches_is_told_what_cuda_has_instead(source):
    complaint = 'kernel.cu(25): error: identifier "cudaDeviceSynchronize" is undefined'
    assert "cudaStreamTailLaunch" in helps(complaint, source, "cuda")


def test_a_word_that_a_branch_of_the_source_defines_is_had_by_a_macro(source):
    branch = "#if OF_FLOATS == 1 && !defined(SLOW)\n#define twice(x) (2 * (x))\n#endif\n"
    source.write_text(branch + source.read_text())
    assert helps(UNKNOWN, source, "opencl") == "; twice is there with --define OF_FLOATS=1"


def test_a_file_that_only_passes_a_structure_does_not_define_it(source):
    (source.parent / "uses.cl").write_text("void use(const struct point at, int n) { n = at.x; }")
    complaint = "error: member reference base type 'float' is not a structure"
    assert "no file around k.cl defines point" in helps(complaint, source, "opencl", ["point"])


def test_a_file_that_includes_the_source_after_definitions_of_its_own_is_named(source):
    (source.parent / "program.cl").write_text('#define twice(x) (2 * (x))\n#include "parts/../k.cl"\n')
    said = helps(UNKNOWN, source, "opencl")
    assert said == "; program.cl includes it, so it may define what is missing: give that to autotune new"


def test_the_first_error_says_which_extension_is_needed(source):
    complaint = "error: half requires cl_khr_fp16\nerror: implicit declaration of function 'get_sub_group_id'"
    assert "cl_khr_fp16" in helps(complaint, source, "opencl")


@pytest.mark.parametrize(("name", "dialect"), [("atom_add", "cuda"), ("atom_charge", "opencl")])
def test_no_extension_is_named_for_another_language_or_for_what_only_begins_like_its_functions(
    source, name, dialect
):
    source.write_text(f"void f(int *x) {{ x[0] = {name}(x); }}")
    said = helps(f'error: identifier "{name}" is undefined', source, dialect)
    assert f"no file around k.cl defines {name}" in said


def test_a_type_of_opencl_that_stands_in_for_itself_is_not_missed(source):
    assert helps('error: expected a ";"', source, "cuda", ["uint"]) == ""


def test_a_file_that_cannot_be_read_defines_nothing(source, monkeypatch):
    (source.parent / "a.h").write_text("#define twice(x) (2 * (x))")
    read_text = Path.read_text

    def refused(path, *arguments, **options):
        if path.name == "a.h":
            raise PermissionError
        return read_text(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", refused)
    assert "no file around k.cl defines twice" in helps(UNKNOWN, source, "opencl")


def test_what_a_header_of_the_toolkit_does_not_know_is_no_word_of_the_source():
    errors = [f'{place}: error: identifier "{name}" is undefined' for place, name in PLACES.items()]
    assert undefined_names("\n".join(errors)) == ["b"]


def test_a_function_is_told_by_its_name_without_its_namespaces():
    symbols = {
        "_Z5twicef": "twice",
        "_ZN3own4pairIdEC1Ev": "pair",
        "_ZNK3own4pair3addEf": "add",
        "add": "add",
    }
    log = "\n".join(f"ptxas fatal   : Unresolved extern function '{symbol}'" for symbol in symbols)
    assert undefined_names(log) == ["twice", "pair", "add"]


def test_a_part_of_another_file_is_told_which_whatever_the_error_is(source):
    (source.parent / "program.cl").write_text('#include "k.cl"\n')
    said = helps("k.cl:1:9: error: expression must have class type", source, "opencl")
    assert said == "; program.cl includes it, so it may define what is missing: give that to autotune new"
