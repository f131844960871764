"""Includes, line numbers and macros of kernel sources."""

import pytest

from autotune.compilers.source_text import missing_headers, read_source, render, source_of_text
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
    (tmp_path / "kernel.cu").write_text("DTYPE x[MODE * SIZE];\n")
    (tmp_path / "kernel.py").write_text("x = 1\n")
    macros = {"DTYPE": "int", "MODE_FAST": 1, "MODE": "MODE_FAST", "SIZE": 4}
    assert render(read_source(tmp_path / "kernel.cu"), macros).startswith(
        "#define DTYPE int\n#define MODE_FAST 1\n#define MODE MODE_FAST\n#define SIZE 4\n"
    )
    assert render(read_source(tmp_path / "kernel.py"), macros).startswith(
        "DTYPE = 'int'\nMODE_FAST = 1\nMODE = MODE_FAST\nSIZE = 4\n"
    )


def defined(source, macros):
    text = render(source_of_text(source, "kernel.cl"), macros)
    return {line.split()[1] for line in text.splitlines() if line.startswith("#define")}


def test_configurations_whose_differences_no_code_reads_have_the_same_text():
    source = source_of_text("int x = TILE; /* GRID in words alone */\n", "kernel.cl")
    texts = {render(source, {"TILE": 8, "GRID": grid}) for grid in (1, 2)}
    assert len(texts) == 1 and "#define TILE 8" in texts.pop()


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("int x = GRID_SIZE;", "read"),
        ("#ifdef GRID_SIZE\n#endif", "asked for"),
        ("#define OF(what) GRID_##what\nint x = OF(SIZE);", "pasted from two words"),
        ("#define OF(a, b, c) a##b##c\nint x = OF(G, RID_, SIZE);", "pasted from three"),
        ("#include <vendor.h>", "perhaps read by a header of the compiler"),
    ],
)
def test_a_macro_that_something_may_read_stays(source, why):
    assert "GRID_SIZE" in defined(source, {"GRID_SIZE": 4}), why


def test_a_macro_that_another_one_names_stays_and_so_does_a_reserved_one():
    macros = {"MODE_FAST": 1, "MODE_SLOW": 2, "MODE": "MODE_FAST", "__CL_FAST": 1}
    assert defined("int x = MODE;", macros) == {"MODE_FAST", "MODE", "__CL_FAST"}


def test_a_name_of_numbers_alone_is_pasted_from_any():
    assert defined("#define OF(n) N##n\nint x = OF(__LINE__), N;", {"N12": 1, "M12": 1}) == {"OF(n)", "N12"}


def test_headers_of_named_folders_are_put_in_place_and_others_left(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.h").write_text("#pragma once\n#include <b.h>\nint a;\n")
    (tmp_path / "lib" / "b.h").write_text('#ifndef B\n#define B\n#include "a.h"\nint b;\n#endif\n')
    (tmp_path / "kernel.cu").write_text("#include <a.h>\n#include <b.h>\n#include <cub/cub.cuh>\nint own;\n")
    source = read_source(tmp_path / "kernel.cu", [tmp_path / "lib"])
    assert source.text.count("int a;") == source.text.count("int b;") == 1
    assert "pragma once" not in source.text and "#include <cub/cub.cuh>" in source.text
    (tmp_path / "lib" / "b.h").write_text("int b = 2;\n")
    assert read_source(tmp_path / "kernel.cu", [tmp_path / "lib"]).sha256 != source.sha256


def test_a_header_of_the_toolkit_is_not_missing_where_no_toolkit_is(tmp_path, monkeypatch):
    monkeypatch.setattr("autotune.compilers.cuda_headers.include_dirs", lambda: ())
    toolkit = (
        "cuda_fp16.h",
        "cuda_bf16.hpp",
        "mma.h",
        "cooperative_groups.h",
        "cub/cub.cuh",
        "cuda/pipeline",
    )
    own = ("cuda_helpers.h", "cuda_fp16_tools.h")
    (tmp_path / "kernel.cu").write_text("".join(f'#include "{name}"\n' for name in (*toolkit, *own)))
    assert missing_headers(tmp_path / "kernel.cu") == own


def test_a_header_that_stands_under_a_condition_is_put_in_place_again(tmp_path):
    (tmp_path / "a.h").write_text("#ifndef A\n#define A\nint a;\n#endif\n")
    (tmp_path / "kernel.cu").write_text(
        '#if FAST\n#include "a.h"\n#include "gone.h"\n#endif\n#include "a.h"\n'
    )
    text = read_source(tmp_path / "kernel.cu").text
    assert text.count("int a;") == 2 and '#include "gone.h"' in text


def test_an_include_that_is_never_compiled_is_left_alone(tmp_path):
    text = '#if 0\n#include "gone.h"\n#endif\n/*\n#include "gone.h"\n*/\nint own;\n'
    (tmp_path / "kernel.cu").write_text(text)
    source = read_source(tmp_path / "kernel.cu")
    assert source.text == f'#line 1 "kernel.cu"\n{text}' and not source.hidden


def test_macros_of_a_header_without_includes_decide_about_later_includes(tmp_path):
    (tmp_path / "settings.h").write_text('#define NEW 1\n#define LAYOUT "rows.h"\n')
    (tmp_path / "rows.h").write_text("int rows;\n")
    (tmp_path / "old.h").write_text("int old;\n")
    choice = '#if NEW\n#include LAYOUT\n#else\n#include "old.h"\n#endif\n'
    (tmp_path / "kernel.cu").write_text(f'#include "settings.h"\n{choice}')
    text = read_source(tmp_path / "kernel.cu").text
    assert "int rows;" in text and "int old;" not in text


def test_a_name_that_a_template_declares_is_no_macro(tmp_path):
    code = "template <class T, int ROWS = 4>\n__global__ void f(T *x) { x[BLOCK] = 0; }\n"
    (tmp_path / "kernel.cu").write_text(code)
    text = render(read_source(tmp_path / "kernel.cu"), {"ROWS": 8, "T": 1, "BLOCK": 64})
    assert "#define BLOCK 64" in text and "ROWS 8" not in text and "define T " not in text


def test_lines_after_a_branch_with_an_include_are_counted_whether_or_not_it_is_compiled(tmp_path):
    (tmp_path / "own.h").write_text("int a;\n")
    text = '#ifdef GIVEN\n#include "own.h"\nint b;\n#endif\nint c;\n#ifdef OTHER\nint d;\n#endif\n'
    (tmp_path / "fill.cl").write_text(text)
    lines = read_source(tmp_path / "fill.cl").text.split("\n")
    assert lines[lines.index("int c;") - 1] == '#line 5 "fill.cl"'
    assert [line for line in lines if line.startswith("#line")][2:] == [
        '#line 3 "fill.cl"',
        '#line 5 "fill.cl"',
    ]


def test_a_header_that_an_installed_toolkit_does_not_have_is_one_of_the_source(tmp_path, monkeypatch):
    (tmp_path / "cuda" / "std").mkdir(parents=True)
    (tmp_path / "cuda" / "std" / "version").touch()
    monkeypatch.setattr("autotune.compilers.cuda_headers.include_dirs", lambda: (tmp_path,))
    (tmp_path / "kernel.cu").write_text(
        '#include "cuda/own.h"\n#include "cuda/std/version"\n#include <mma.h>\n'
    )
    assert missing_headers(tmp_path / "kernel.cu") == ("cuda/own.h",)
