"""`autotune new`, as a user runs it: the files can be searched, and nothing is overwritten."""

import json

import pytest

from autotune.checks.host_sanitizer import find_host_sanitizer
from autotune.drafting.compiled_draft import has_nvrtc
from autotune.space import constraint_report
from autotune.tuning.task import Target, count_space

PORTABLE = """\
#include "portable.h"

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
blend(GLOBAL const DTYPE *x, GLOBAL const DTYPE *y, GLOBAL DTYPE *blended, const DTYPE share,
    const unsigned long n)
{
    const size_t first = (size_t)BLOCK_INDEX(x) * BLOCK_SIZE * WORK_PER_THREAD + THREAD_INDEX(x);
    for (int k = 0; k < WORK_PER_THREAD; k++)
        if (first + k * BLOCK_SIZE < n)
            blended[first + k * BLOCK_SIZE] =
                share * x[first + k * BLOCK_SIZE] + (1 - share) * y[first + k * BLOCK_SIZE];
}
"""
UNCHECKED = """\
__kernel void shift(__global const float *x, __global float *y)
{
    const size_t i = get_global_id(0);
    y[i] = x[(i + OFFSET) % get_global_size(0)];
}
"""


@pytest.mark.parametrize(
    ("name", "text", "says", "dialect", "steps"),
    [
        (
            "blend.cu",
            PORTABLE,
            "guessed from the kernel's formula",
            "portable",
            [
                "next  autotune search blend.yaml",
                'then  in a program: autotune.load_kernel("blend")(x, y, blended, share=...)',
            ],
        ),
        (
            "shift.cl",
            UNCHECKED,
            "nothing is compared",
            "opencl",
            [
                "next  complete shift.py: it has to return the expected results",
                "then  autotune search shift.yaml",
                'then  in a program: autotune.load_kernel("shift")(x, y)',
            ],
        ),
    ],
    ids=["compared", "not compared"],
)
def test_a_new_space_can_be_searched_as_it_is_which_is_the_next_step(
    folder, name, text, says, dialect, steps
):
    (folder.path / name).write_text(text)
    done = folder.run("new", name)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout and stated(done, steps)[-1].startswith("good  the default took ")
    space = name.replace(name[-2:], "yaml")
    assert f"dialect: {dialect}\n" in (folder.path / space).read_text()
    arguments = ("--device", "opencl:0", "--size", "n=8192", "--budget", "2", "--engine", "random", "--json")
    arguments += ("--no-sanitizer",)
    done = folder.run("search", space, *arguments)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["counts"] == {"ok": 2} and found["compared"] is (says != "nothing is compared")


def test_the_next_steps_are_those_that_this_machine_can_take(folder, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    text = "__global__ void keyword(float *in, int n) { if (threadIdx.x < n) in[threadIdx.x] *= 2; }"
    (folder.path / "keyword.cu").write_text(text)
    steps = [
        "next  autotune space keyword.yaml --run",
        "then  autotune space keyword.yaml --compile --device sm_90",
        "then  on a machine with a device for cuda: autotune search keyword.yaml",
        'then  in a program: autotune.load_kernel("keyword")(in_)',
    ]
    done = folder.run("new", "keyword.cu")
    assert done.returncode == 0
    note = stated(done, steps)[-1]
    if find_host_sanitizer() is None:
        assert note.startswith("note  not run: g++ is not installed")
        return
    assert note.startswith("note  the default does not run yet: wrong_result: run on the CPU: a race: ")
    assert "keyword (keyword.cu:1)" in note  # all blocks write the same elements


@pytest.mark.skipif(find_host_sanitizer() is None, reason="needs g++")
def test_a_default_that_is_right_on_the_cpu_is_not_to_be_run_there_again(folder, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    body = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2;"
    (folder.path / "twice.cu").write_text(f"__global__ void twice(float *x, int n) {{ {body} }}")
    steps = [
        "next  autotune space twice.yaml --compile --device sm_90",
        "then  on a machine with a device for cuda: autotune search twice.yaml",
        'then  in a program: autotune.load_kernel("twice")(x)',
    ]
    done = folder.run("new", "twice.cu", "--quiet")
    assert done.returncode == 0 and done.stderr == ""
    assert stated(done, steps)[-1] == "good  the default is right on the CPU, at 4 sizes"


def stated(done, steps):
    """The lines before the next steps, which come last."""
    lines = done.stdout.splitlines()
    assert lines[-len(steps) :] == steps
    said = lines[: -len(steps)]
    assert any(line.startswith("good  the space has ") and " valid configuration" in line for line in said)
    return said


def test_what_was_found_and_compiled_is_said_once_and_has_no_findings(folder, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    text = "__global__ void zero(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] = N + LANES; }\n"
    text = f"#define ODD 1\n#if ODD\n#define UNUSED 8\n#endif\n{text}"
    program = f"#include <vector>\n#define LANES 32\n{text}int main() {{ return 0; }}\n"
    (folder.path / "zero.cu").write_text(program)
    done = folder.run("new", "zero.cu")
    assert done.stdout.splitlines()[0] == "zero: dialect cuda"
    assert ("good  the default compiles for sm_90" in done.stdout) is has_nvrtc()
    assert "\nnote  main() and other code for the host stays: it is left out where" in done.stdout
    assert "\nnote  LANES, ODD: fixed by the source; #ifndef NAME around a #define makes it" in done.stdout
    space, _ = count_space(Target(folder.path / "zero.yaml", "sm_90"))
    assert not constraint_report(space)


def test_a_source_with_several_kernels_says_which_one_and_how_to_take_another(folder, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    text = "__global__ void zero(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 0; }\n"
    (folder.path / "two.cu").write_text(text + text.replace("zero", "other"))
    done = folder.run("new", "two.cu", "--entry", "other")
    assert done.stdout.startswith(
        "zero, other: dialect cuda; the space is for other; for another, give --entry\n"
    )


def test_a_default_that_fails_is_told(folder):
    (folder.path / "shift.cl").write_text(UNCHECKED.replace("y[i]", "y[(int)i - 1]"))
    done = folder.run("new", "shift.cl")
    assert done.returncode == 0
    [told] = [line for line in done.stdout.splitlines() if "does not run yet" in line]
    assert told.startswith("note  the default does not run yet: out_of_bounds: wrote outside y")
    assert "; shift.cl:" in told and "; guard the access, or correct the shape of y" in told


def test_a_wrong_reference_of_a_new_space_is_noticed(folder):
    (folder.path / "blend.cu").write_text(PORTABLE.replace("1 - share", "2 - share"))
    assert folder.run("new", "blend.cu").returncode == 0
    (folder.path / "blend.cu").write_text(PORTABLE)
    done = folder.run("search", "blend.yaml", "--device", "opencl:0", "--size", "n=8192", "--budget", "1")
    assert done.returncode == 1 and "wrong_result: blended[0]" in done.stderr


def test_a_program_of_the_kernel_s_name_stays_and_the_reference_gets_another_name(folder):
    (folder.path / "blend.cu").write_text(PORTABLE)
    (folder.path / "blend.py").write_text("print('the host')\n")
    done = folder.run("new", "blend.cu")
    assert done.returncode == 0
    assert "wrote blend_reference.py: guessed from the kernel's formula\n" in done.stdout
    assert "\nreference: blend_reference.py\n" in (folder.path / "blend.yaml").read_text()
    assert (folder.path / "blend.py").read_text() == "print('the host')\n"
    done = folder.run("new", "blend.cu")
    assert "to start anew: rm blend.yaml blend_reference.py\n" in done.stderr


@pytest.mark.parametrize(
    ("taken", "mend"),
    [("blend.yaml", "to start anew: rm blend.yaml"), ("blend_headers", "move it away first")],
    ids=["a space", "a file of the user's"],
)
def test_nothing_is_ever_overwritten(folder, taken, mend):
    (folder.path / "blend.cu").write_text(PORTABLE)
    (folder.path / taken).write_text("mine")
    before = folder.files()
    done = folder.run("new", "blend.cu")
    assert done.returncode == 2 and f"{taken}: there already" in done.stderr
    assert f"; {mend}\n" in done.stderr
    assert folder.files() == before


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.cu", None, "none.cu: cannot be read: No such file or directory; expected a kernel source"),
        ("empty.cu", "", "empty.cu: the file is empty; write the kernel in it"),
        (
            "lost.cl",
            '#include "lost.h"\n' + UNCHECKED.replace("x[", "lost(x)["),
            'lost.cl:1: #include "lost.h": no such',
        ),
    ],
)
def test_a_source_that_cannot_be_used_is_one_line(folder, name, text, message):
    if text is not None:
        (folder.path / name).write_text(text)
    before = folder.files()
    done = folder.run("new", name)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1
    assert folder.files() == before


def test_a_header_that_is_not_there_is_empty_as_long_as_the_kernel_does_without(folder):
    (folder.path / "shift.cl").write_text('#include "parts/own.h"\n' + UNCHECKED)
    done = folder.run("new", "shift.cl")
    assert done.returncode == 0 and "\ngood  the space has " in done.stdout
    assert "wrote shift_headers: empty headers for the source's headers that were not found" in done.stdout
    again = "rm -r shift.yaml shift.py shift_headers && autotune new shift.cl --include FOLDER\n"
    assert again in done.stdout
    (folder.path / ".git").mkdir()  # no folder around is searched
    (folder.path / "near/parts").mkdir(parents=True)
    (folder.path / "near/parts/own.h").write_text("")
    for name in ("shift.yaml", "shift.py", "shift_headers/parts/own.h"):
        (folder.path / name).unlink()
    (folder.path / "shift_headers/parts").rmdir()
    (folder.path / "shift_headers").rmdir()
    done = folder.run("new", "shift.cl")
    assert again.replace("FOLDER", "near") in done.stdout
    assert "In place of parts/own.h" in (folder.path / "shift_headers/parts/own.h").read_text()
    assert "include_dirs: [shift_headers]" in (folder.path / "shift.yaml").read_text()


def test_a_missing_header_of_another_folder_gets_a_place_inside_this_one(folder):
    (folder.path / "own.h").write_text("// mine")
    (folder.path / "shift.cl").write_text(f'#include "../../parts/own.h"\n#include "near.h"\n{UNCHECKED}')
    done = folder.run("new", "shift.cl")
    assert done.returncode == 0 and "\ngood  the space has " in done.stdout
    assert "wrote shift_headers: empty headers" in done.stdout
    headers = folder.path / "shift_headers"
    assert {file.relative_to(headers).as_posix() for file in headers.rglob("*.h")} == {
        "parts/own.h",
        "up/up/near.h",
    }
    assert "include_dirs: [shift_headers/up/up]" in (folder.path / "shift.yaml").read_text()


def test_a_missing_header_with_an_absolute_path_is_reported_and_nothing_is_written(folder):
    include = str(folder.path / "away/own.h")
    (folder.path / "shift.cl").write_text(f'#include "{include}"\n#include "near.h"\n{UNCHECKED}')
    before = folder.files()
    done = folder.run("new", "shift.cl")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f'shift.cl:1: #include "{include}": no such file' in done.stderr
    assert folder.files() == before


def test_a_kernel_that_follows_indices_in_bytes_runs_with_zeros_and_room(folder):
    (folder.path / "pick.cl").write_text(
        """
        kernel void pick(global void *rows, ulong offset, global int *places, global float *out, int count)
        {
            global char *first = (global char *)rows + offset;
            int row = ((global int *)((global char *)places + get_group_id(0)))[0];
            for (int i = get_local_id(0); i < count; i += get_local_size(0))
                out[i] = ((global float *)(first + 4096 * row))[i];
        }
        """
    )
    done = folder.run("new", "pick.cl")
    assert done.returncode == 0 and "\ngood  the space has " in done.stdout
    space = (folder.path / "pick.yaml").read_text()
    assert "name: rows, dtype: uint8" in space and "sizes:\n  default: {count: " in space


def test_macros_that_are_fixed_are_listed_once(folder, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    body = "#if ODD\nx[threadIdx.x] = LANES;\n#endif\n"
    (folder.path / "set.cu").write_text(
        f"#define LANES 32\n#define ODD 1\n__global__ void __launch_bounds__(32) set(float *x) {{\n{body}}}\n"
    )
    said = folder.run("new", "set.cu", "--quiet").stdout
    assert said.count("LANES") == said.count("LANES, ODD: fixed by the source") == 1
    assert "  VARIANT                                  1\n" in said
