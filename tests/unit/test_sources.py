"""Includes, line numbers and macros of kernel sources."""

import pytest

from autotune.compilers.kernel_source import read_source, render
from autotune.errors import InputError


def test_includes_are_found_beside_the_source_and_in_the_package(tmp_path):
    (tmp_path / "mine.h").write_text("int mine;\n")
    (tmp_path / "kernel.cu").write_text(
        '#include "mine.h"\n#include "portable.h"\n#include "mine.h"\nint own;\n'
    )
    text = read_source(tmp_path / "kernel.cu").text
    assert text.count("int mine;") == 1 and "#define KERNEL" in text
    assert '#line 4 "kernel.cu"\nint own;' in text


def test_a_missing_include_names_the_including_file(tmp_path):
    (tmp_path / "kernel.cu").write_text('#include "gone.h"\n')
    with pytest.raises(InputError, match=r"kernel\.cu.*gone.h"):
        read_source(tmp_path / "kernel.cu")


def test_a_system_include_is_left_to_the_compiler(tmp_path):
    (tmp_path / "kernel.cu").write_text("#include <cuda_fp16.h>\n")
    assert "#include <cuda_fp16.h>" in read_source(tmp_path / "kernel.cu").text


def test_the_hash_follows_what_is_included(tmp_path):
    (tmp_path / "mine.h").write_text("int mine;\n")
    (tmp_path / "kernel.cu").write_text('#include "mine.h"\n')
    before = read_source(tmp_path / "kernel.cu").sha256
    (tmp_path / "mine.h").write_text("int yours;\n")
    assert read_source(tmp_path / "kernel.cu").sha256 != before


def test_macros_come_first_as_definitions_of_the_language(tmp_path):
    (tmp_path / "kernel.cu").write_text("int x;\n")
    (tmp_path / "kernel.py").write_text("x = 1\n")
    macros = {"DTYPE": "int", "MODE_FAST": 1, "MODE": "MODE_FAST", "SIZE": 4}
    assert render(read_source(tmp_path / "kernel.cu"), macros).startswith(
        "#define DTYPE int\n#define MODE_FAST 1\n#define MODE MODE_FAST\n#define SIZE 4\n"
    )
    assert render(read_source(tmp_path / "kernel.py"), macros).startswith(
        "DTYPE = 'int'\nMODE_FAST = 1\nMODE = MODE_FAST\nSIZE = 4\n"
    )
