"""What a compiler reads besides a source's text is told, and the source counts as another one each time."""

import pytest

from autotune.compilers.source_text import read_source, source_of_text

KNOWN = {  # sources of which the text has all that a compiler reads
    "quoted": '#include "h.h"\n',
    "macro": '#define HEADER "h.h"\n#include HEADER\n',
    "macro of a header": '#include "names.h"\n#include "h.h"\n',
    "toolkit": "#include <cuda_fp16.h>\n",
    "toolkit by a macro": "#define HEADER <cuda_fp16.h>\n#include HEADER\n",
    "never compiled": "#if 0\n#include <other.h>\n#endif\n",
    "for another compiler": "#ifdef __HIPCC__\n#include <hip/hip_runtime.h>\n#endif\n",
    "decided by the text": "#define N 3\n#if N * 2 > 7 || !defined(N)\n#include <other.h>\n#endif\n",
    "asked for and there": '#if __has_include("h.h")\n#include "h.h"\n#endif\n',
    "asked for and not there": '#if __has_include("no.h")\n#include "no.h"\n#endif\n',
    "comment inside": '#include /* */ "h.h"\n',
    "another sign": '%:include "h.h"\n',
    "continued line": '#\\\ninclude "h.h"\n',
    "only a comment": "/*\n#include <other.h>\n*/\n// #include <other.h>\n",
}
HIDDEN = {
    "angle brackets": ("#include <other.h>\n", "#include <other.h>"),
    "perhaps compiled": ("#if WPT > 1\n#include <other.h>\n#endif\n", "#include <other.h>"),
    "one of two": ('#ifdef A\n#define H "h.h"\n#else\n#define H "i.h"\n#endif\n#include H\n', "#include H"),
    "macro from outside": ("#include HEADER\n", "#include HEADER"),
    "replaced macro": ('#define H "h.h"\n#undef H\n#include H\n', "#include H"),
    "next": ('#include_next "h.h"\n', '#include_next "h.h"'),
    "asked for by a macro": ("#define HAS(x) __has_include(x)\n", "__has_include(x)"),
    "assembler": ('asm(".incbin \\"table.bin\\"");\n', ".incbin"),
}


@pytest.fixture
def read(tmp_path, monkeypatch):
    for name in ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "POCL_EXTRA_BUILD_FLAGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h.h").write_text("#define ONE 1\n")
    (tmp_path / "names.h").write_text("#define ONE 1\n")

    def of(text):
        (tmp_path / "k.cl").write_text(text)
        return read_source(tmp_path / "k.cl")

    return of


@pytest.mark.parametrize("case", KNOWN)
def test_a_source_whose_includes_are_all_resolved_is_the_same_each_time(read, case):
    first, second = read(KNOWN[case]), read(KNOWN[case])
    assert not first.hidden and first == second


@pytest.mark.parametrize("case", HIDDEN)
def test_a_source_of_which_a_compiler_reads_more_is_another_one_each_time(read, case):
    text, hidden = HIDDEN[case]
    first, second = read(text), read(text)
    assert first.hidden == second.hidden == hidden
    assert first.sha256 != second.sha256 and first.text != second.text
    assert source_of_text(text, "k.cl").hidden == hidden


@pytest.mark.parametrize("case", ["quoted", "macro", "asked for and there"])
def test_a_header_that_is_found_is_part_of_the_source(read, tmp_path, case):
    before = read(KNOWN[case])
    assert "#define ONE 1" in before.text
    (tmp_path / "h.h").write_text("#define ONE 2\n")
    assert read(KNOWN[case]).sha256 != before.sha256


def test_a_header_that_comes_later_changes_the_source(read, tmp_path):
    before = read(KNOWN["asked for and not there"])
    (tmp_path / "no.h").write_text("#define ONE 2\n")
    assert "#define ONE 2" in read(KNOWN["asked for and not there"]).text
    assert read(KNOWN["asked for and not there"]).sha256 != before.sha256


def test_a_header_with_the_name_of_a_compiler_s_own_is_told(read, tmp_path):
    assert not read(KNOWN["toolkit"]).hidden
    (tmp_path / "cuda_fp16.h").write_text("")
    assert read(KNOWN["toolkit"]).hidden == "#include <cuda_fp16.h>", "the compiler looks in this folder, too"


@pytest.mark.parametrize(
    ("variable", "value", "text", "is_hidden"),
    [
        ("POCL_EXTRA_BUILD_FLAGS", "-I{}", "", False),
        ("POCL_EXTRA_BUILD_FLAGS", "-I{}", "#include <h.h>\n", True),
        ("POCL_EXTRA_BUILD_FLAGS", "-I {}", "#include <cuda_fp16.h>\n", True),
        ("POCL_EXTRA_BUILD_FLAGS", "-O1 -include {}/h.h", "", True),
        ("NVCC_APPEND_FLAGS", "--pre-include={}/h.h", "", True),
        ("NVCC_APPEND_FLAGS", "--maxrregcount=32", "", False),
        ("CPATH", "/nowhere:{}", "#include <cuda_fp16.h>\n", True),
        ("CPATH", "/nowhere", "#include <cuda_fp16.h>\n", False),
    ],
)
def test_files_that_a_variable_brings_in_are_told(
    read, tmp_path, monkeypatch, variable, value, text, is_hidden
):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "cuda_fp16.h").write_text("")
    monkeypatch.setenv(variable, value.format(tmp_path / "folder"))
    assert bool(read(text + "int x;\n").hidden) == is_hidden


@pytest.mark.parametrize("option", ["-Iinc", "-include", "--pre-include", "-isystem", "-Xclang"])
def test_an_option_that_reads_files_is_refused_with_what_to_write(folder, option):
    folder.space.write_text(f"{folder.space.read_text()}compiler_options: {{opencl: {{{option}: true}}}}\n")
    done = folder.run("space", "double.yaml", "--device", "fake")
    assert done.returncode == 2 and "`include_dirs`" in done.stderr, done.stderr


def test_a_search_says_what_cannot_be_known_and_uses_nothing_of_an_earlier_one(folder):
    folder.write(f"import importlib\n{(folder.path / 'double.py').read_text()}")
    first = folder.run("search", "double.yaml", "--device", "fake", "--budget", "3")
    assert first.returncode == 0, first.stderr
    assert "what double.py: import importlib reads cannot be known, so trials and binaries" in first.stderr
    again = folder.run("search", "double.yaml", "--device", "fake", "--budget", "3")
    assert (
        again.returncode == 2
        and "something has changed: perhaps what double.py: import importlib reads" in again.stderr
    )
    fresh = folder.search("--budget", "3", "--fresh")
    assert fresh["resumed"] == 0 and fresh["counts"] == {"ok": 3}
