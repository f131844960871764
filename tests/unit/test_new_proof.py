"""`autotune new` on sources that stall, crash or mislead: one line, in time, and nothing half done."""

import errno
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from autotune.core.stages import unobserved
from autotune.drafting.compiled_draft import has_nvrtc
from autotune.drafting.extraction import extracted
from autotune.drafting.first_space import Limits, _Work, _Written, first_space
from autotune.drafting.space_draft import KernelFile
from autotune.drafting.workshop import Workshop
from autotune.errors import InputError, WriteError
from autotune.tuning.task import Target, count_space
from tests.conftest import LIMIT_S

COPY = "{ int i = get_global_id(0); if (i < n) y[i] = x[i]; }\n"
CALM = "__kernel void copy(__global const float *x, __global float *y, int n) " + COPY
ENDLESS = """\
template <int N, int M> struct Sum { static const int v = Sum<N - 1, 2 * M>::v + Sum<N - 1, 2 * M + 1>::v; };
template <int M> struct Sum<0, M> { static const int v = M; };
__global__ void endless(float *y, int n) { if (threadIdx.x < n) y[threadIdx.x] = Sum<28, 0>::v; }
"""


TRITON = "import triton\nimport triton.language as tl\n@triton.jit\n"


@pytest.fixture
def without_gpu(folder, monkeypatch):
    """A folder on a machine with Triton and without a GPU."""
    pytest.importorskip("triton.compiler", reason="needs the extra triton")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return folder


def quoted(text):
    """A text as C has it in plain strings, one for each line."""
    return "\n".join(f'"{line}\\n"' for line in text.splitlines())


def test_a_source_that_stalls_the_reader_costs_one_line(folder):
    os.mkfifo(folder.path / "stalls.cl")  # a read waits for a writer
    before = folder.files()
    with pytest.raises(InputError, match=r"stalls.cl: not read: took longer than 0.7 s; move the kernel"):
        first_space(folder.path / "stalls.cl", None, unobserved, limits=Limits(reading_s=0.7))
    assert folder.files() == before


@pytest.mark.parametrize(("share_s", "left_s"), [(LIMIT_S, 0.0), (0.0, LIMIT_S)])
def test_loading_the_space_gets_its_share_of_the_time_or_all_that_is_left(share_s, left_s, folder):
    """It is the last step that must succeed."""
    space = folder.path / "double.yaml"
    kernel = KernelFile(folder.path / "double.cu", "double", "double.py")
    with Workshop(left_s) as workshop, _Written() as written:
        work = _Work(workshop, written, Limits(share_s, left_s), unobserved)
        assert work._loaded(kernel, space, can_run=False).is_good


def test_a_source_that_crashes_the_reader_costs_one_line(folder):
    source = folder.path / "crashes.cl"
    os.mkfifo(source)
    killer = Thread(target=kill_reader_of, args=(source,))
    killer.start()
    with pytest.raises(InputError, match=r"crashes.cl: not read: the process ended \(killed by SIGSEGV\)"):
        first_space(source, None, unobserved)
    killer.join()
    assert not source.with_suffix(".yaml").exists()


def kill_reader_of(fifo: Path) -> None:
    """Wait until a process reads, and let it crash."""
    while True:
        try:
            writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError as error:
            assert error.errno == errno.ENXIO  # nobody reads yet
            time.sleep(0.01)
    readers = []
    while not readers:
        listed = (link for link in Path("/proc").glob("[0-9]*/fd/*") if link.parts[2] != str(os.getpid()))
        readers = [int(link.parts[2]) for link in listed if points_to(link, fifo)]
    os.kill(readers[0], signal.SIGSEGV)
    os.close(writer)


def points_to(link: Path, file: Path) -> bool:
    try:
        return str(link.readlink()) == str(file)
    except OSError:  # the process has ended
        return False


@pytest.mark.parametrize("parameters", ["", "__global const float *x"])
def test_a_kernel_without_a_result_runs_and_nothing_is_compared(folder, parameters):
    (folder.path / "none.cl").write_text(
        f"__kernel void none({parameters}) {{ int i = get_global_id(0); }}\n"
    )
    done = folder.run("new", "none.cl")
    assert "returns nothing yet, so nothing is compared" in done.stdout
    assert "good  the default took" in done.stdout


@pytest.mark.parametrize(("guard", "doubts"), [("i % 16 == 0", 1), ("i % 2 == 0", 0)])
def test_a_default_that_leaves_most_of_an_output_as_it_was_is_doubted(folder, guard, doubts):
    """Nothing is compared yet, so only that shows a block or a grid that covers too little."""
    source = folder.path / "sparse.cl"
    source.write_text(CALM.replace("i < n", f"i < n && {guard}").replace("= x[i]", "= x[i] + helped(i)"))
    source.write_text("float helped(int i) { while (i > 9) i -= 9; return 2 + i; }\n" + source.read_text())
    notes = list(map(str, first_space(source, None, unobserved).notes))
    asked = [note for note in notes if "after a run, as before it: do grid and block cover" in note]
    assert len(asked) == doubts and notes[-1].startswith("good  the default took"), notes


@pytest.mark.skipif(not has_nvrtc(), reason="NVRTC is not installed")
def test_a_source_that_stalls_the_compiler_gets_its_space_and_one_line(folder, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    source = folder.path / "endless.cu"
    source.write_text(ENDLESS)
    found = first_space(source, None, unobserved, limits=Limits(reading_s=20, total_s=28))
    # on a busy machine the step may end before the compiler's own limit
    said = re.match(
        r"note  not compiled: (the compiler took more than .*--time|this took longer)", str(found.notes[-1])
    )
    assert said is not None, found.notes
    assert len(count_space(Target(found.space, "sm_90"))[0]) > 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "twice.cu",
            "template <int n> __global__ void k(float *y, const float *x) { int i = blockIdx.x * "
            "blockDim.x + threadIdx.x; if (i < n) y[i] = x[i]; }\n",
        ),
        ("a #1: [b].cl", CALM),
        ("on.cl", CALM.replace("x[", "on[").replace("*x", "*on").replace("copy", "null")),
    ],
)
def test_a_space_that_is_written_loads(folder, name, text):
    (folder.path / name).write_text(text)
    before = folder.files()
    done = folder.run("new", name)
    spaces = [file for file in folder.path.glob("*.yaml") if file.name not in before]
    if done.returncode:
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        assert f"{name}: no space was written, because the guessed one does not load: " in done.stderr
        assert folder.files() == before
    else:
        assert len(count_space(Target(spaces[0], "sm_90"))[0]) > 0


def test_nothing_stays_when_one_of_the_files_cannot_be_written(folder):
    (folder.path / "copy.cl").write_text(CALM)
    (folder.path / "copy.py").symlink_to(folder.path / "nowhere" / "copy.py")
    with pytest.raises(WriteError, match=r"copy\.py: cannot be written"):
        first_space(folder.path / "copy.cl", None, unobserved)
    assert not (folder.path / "copy.yaml").exists()


def test_many_macros_do_not_make_a_space_that_cannot_be_counted(folder):
    names = [f"FACTOR_{number}" for number in range(20)]
    macros = "".join(f"#ifndef {name}\n#define {name} 4\n#endif\n" for name in names)
    text = CALM.replace("y[i] = x[i];", f"y[i] = x[i] * ({' + '.join(names)});")
    (folder.path / "many.cl").write_text(macros + text)
    done = folder.run("new", "many.cl")
    assert done.returncode == 0 and "good  the space has " in done.stdout


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "twice.py",
            "import triton\n@triton.jit\ndef twice(x):\n    return 2 * x\n",
            "twice.py: no kernel found: twice is a helper, which takes blocks of elements or accesses "
            "nothing through its parameters; give autotune new the file with the kernel that calls them",
        ),
        (
            "tiles.cu",
            "__global__ void tiles(const __grid_constant__ CUtensorMap map, float *y) { y[0] = 1; }\n",
            "tiles.cu:1: tiles: map is a tensor map, which a program makes of an array; take a pointer to "
            "its elements instead, for autotune passes arrays and numbers only",
        ),
        (
            "plain.py",
            "import numpy as np\nprint(np.arange(3))\n",
            "plain.py: no kernel found: no function under @triton.jit, and no string with a kernel in CUDA "
            "C++ or OpenCL C; name the file that has it",
        ),
        (
            "mako.py",
            'text = """__kernel void k(__global ${kind} *x) { x[0] = 1; }"""\n',
            "mako.py:1: the kernel in this string: ${kind} is of a template language, which autotune does "
            "not know; write what it stands for in its place: a macro becomes a parameter",
        ),
        (
            "joined.py",
            'text = """\n@triton.jit\ndef k(x): pass\n"""\n',
            "joined.py:1: a kernel in Triton is in this string: let the program write the text into a file, "
            "and give that to autotune new",
        ),
        (
            "hidden.cu",
            "#if 0\n__global__ void f(float *y) { y[0] = 1; }\n#endif\n",
            "hidden.cu:2: the kernel that begins here cannot be read, or no values of the source's macros "
            "select it; move it and what it uses to a file of its own",
        ),
        (
            "generic.cl",
            "template <typename T> __kernel void fill(__global T *x) { x[0] = 1; }\n",
            "generic.cl:1: fill is a template, which OpenCL C does not have; write a macro in place of T, "
            "which becomes a parameter",
        ),
        (
            "gens.cl",
            "__kernel void %PREFIXcopy(__global %TYPE *x) { x[0] = 1; }\n",
            "gens.cl: %PREFIXcopy is of a template language, which autotune does not know; write what it "
            "stands for in its place: a macro becomes a parameter",
        ),
        (
            "made.py",
            'def kernel(width):\n    return f"__kernel void k(__global float{width} *x) {{ x[0] = 1; }}"\n',
            "made.py:2: the program puts this kernel together when it runs: let the program write the text "
            "into a file, and give that to autotune new",
        ),
    ],
)
def test_what_is_no_kernel_is_one_line(folder, name, text, message):
    (folder.path / name).write_text(text)
    before = folder.files()
    done = folder.run("new", name)
    assert (done.returncode, done.stderr) == (2, f"autotune: {message}\n")
    assert folder.files() == before


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("script.py", f"import pyopencl as cl\nprogram = cl.Program(context, '''\n{CALM}''').build()\n", 2),
        ("plain.c", "/* a program */\nconst char *source =\n" + quoted(CALM) + ";\n", 3),
    ],
)
def test_a_kernel_is_found_in_a_string_of_any_language(tmp_path, name, text, line):
    (tmp_path / name).write_text(text)
    found = extracted(tmp_path / name, None)
    assert (found.text.strip(), found.suffix, found.line) == (CALM.strip(), ".cl", line)


def test_a_kernel_in_a_string_is_copied_to_a_file_of_its_own(folder):
    text = f'import pyopencl as cl\nsource = """{CALM}"""\n'
    (folder.path / "program.py").write_text(text)
    done = folder.run("new", "program.py")
    assert done.returncode == 0, done.stderr
    copy = "program_kernel.cl is a copy of it, which the space is for"
    assert f"note  the kernel is in a string at program.py:2; {copy}\n" in done.stdout
    assert "good  the default took " in done.stdout
    assert (folder.path / "program_kernel.cl").read_text().strip() == CALM.strip()
    assert (folder.path / "program.py").read_text() == text
    again = folder.run("new", "program.py").stderr
    assert "to start anew: rm program_kernel.cl program_kernel.yaml program_kernel.py\n" in again


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("host.cpp", f'#include <string>\nstatic const std::string source =\nR"CL({CALM})CL";\n'),
        ("part.opencl", '// a part\nR"(' + CALM.replace("{", '{\n)" // continued\nR"(', 1) + ')"\n'),
    ],
)
def test_a_kernel_in_raw_strings_of_cpp_is_read_where_it_is(folder, name, text):
    (folder.path / name).write_text(text)
    done = folder.run("new", name)
    assert done.returncode == 0 and "good  the default took " in done.stdout, done.stderr
    assert f"\nsource: {name}\n" in (folder.path / f"{Path(name).stem}.yaml").read_text()


def test_the_parts_of_a_library_that_a_kernel_needs_are_put_before_it(folder):
    (folder.path / "level").mkdir()
    parts = {"twice.opencl": "float twice(float x) { return x + x; }", "unused.opencl": "typedef int whole;"}
    for name, text in parts.items():
        (folder.path / name).write_text(f'R"(\n{text}\n)"\n')
    (folder.path / "level" / "copy.opencl").write_text(f'R"(\n{CALM.replace("x[i]", "twice(x[i])")})"\n')
    done = folder.run("new", "level/copy.opencl")
    assert done.returncode == 0 and "good  the default took " in done.stdout, done.stderr
    front = (folder.path / "level" / "copy_front.opencl").read_text()
    assert '#include "../twice.opencl"\n' in front and "unused" not in front


def test_definitions_and_folders_of_headers_go_into_the_space(folder):
    (folder.path / "parts").mkdir()
    (folder.path / "parts" / "scale.h").write_text("#define SCALED(a) (FACTOR * (a))\n")
    text = CALM.replace("x[i]", "SCALED(x[i]) + WIDTH").replace("float", "real")
    (folder.path / "copy.cl").write_text(f'#include "scale.h"\n{text}')
    options = ("--include", "parts", "--define", "FACTOR=3", "--define", "real=float", "--define", "WIDTH")
    done = folder.run("new", "copy.cl", *options)
    assert done.returncode == 0 and "good  the default took " in done.stdout, done.stderr
    space = (folder.path / "copy.yaml").read_text()
    assert "include_dirs: [parts]\n" in space
    assert "-DFACTOR: \"'3'\", -Dreal: \"'float'\", -DWIDTH: \"'1'\"" in space
    assert "FACTOR: [" not in space


def test_a_default_that_does_not_compile_without_a_header_says_so(folder):
    text = CALM.replace("x[i]", "lost(x[i])")
    (folder.path / "copy.cl").write_text(f"#include <parts/lost.h>\n{text}")
    done = folder.run("new", "copy.cl")
    assert "; not found: parts/lost.h: name the folder with --include\n" in done.stdout, done.stderr


@pytest.mark.parametrize("option", [("--define", "N=4"), ("--include", ".")])
def test_options_for_c_are_refused_for_triton(folder, option):
    text = f"{TRITON}def one(y):\n    tl.store(y, 1.0)\n"
    (folder.path / "one.py").write_text(text)
    done = folder.run("new", "one.py", *option)
    assert done.returncode == 2 and f"one.py: {option[0]} is for sources in C, not for Triton" in done.stderr


def test_a_default_in_triton_that_does_not_compile_is_told_without_a_gpu(without_gpu):
    text = (
        f"{TRITON}def odd(x, y, n, BLOCK: tl.constexpr):\n"
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK + 1)\n"
        "    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)\n"
    )
    (without_gpu.path / "odd.py").write_text(text)
    done = without_gpu.run("new", "odd.py")
    assert done.returncode == 0 and "\nnote  not compiled: " in done.stdout
    line = "odd.py:5: `at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK + 1)`: ValueError: arange's"
    assert line in done.stdout
    assert (
        "; BLOCK=1024 is guessed: give what your program passes, in odd.yaml, or correct the line\n"
        in done.stdout
    )
    assert "\nnext  mend what does not compile\nthen  complete " in done.stdout
    (without_gpu.path / "odd.yaml").unlink()
    (without_gpu.path / "odd_reference.py").unlink()
    (without_gpu.path / "odd.py").write_text(text.replace("BLOCK + 1", "BLOCK"))
    done = without_gpu.run("new", "odd.py")
    assert "\nnote  not run: odd_reference.py:" in done.stdout  # which is not written yet
    assert "\ngood  the default compiles for sm_90\n" in done.stdout
    assert "\nthen  on a machine with a device for triton: autotune search odd.yaml\n" in done.stdout


def test_a_default_in_triton_runs_on_the_cpu_after_it_was_compiled(without_gpu):
    text = (
        f"{TRITON}def more(x, n, BLOCK: tl.constexpr):\n"
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    v = tl.load(x + at, mask=at < n)\n"
        "    tl.store(x + at, v + tl.cdiv(n, n), mask=at < n)\n"
    )
    (without_gpu.path / "more.py").write_text(text)
    done = without_gpu.run("new", "more.py")
    assert "\ngood  the default compiles for sm_90\n" in done.stdout
    assert "\ngood  the default runs on the CPU" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ("tl.static_assert(i.dtype == tl.uint32)", "{name: at, dtype: uint32,"),
        ("tl.static_assert(i.dtype == tl.int64)", "{name: at, dtype: int64,"),
        ("tl.static_assert(v.dtype == tl.float16)", "dtypes: [float16]"),
        ("v = v * (1 / (1 - RATE))", "RATE: [0]"),
        ("v = tl.where(tl.rand(n, o) > p, v * (1 / (1 - p)), 0)", "{name: p, dtype: float32, value: 1.0}"),
    ],
)
def test_a_default_in_triton_that_does_not_compile_gives_way_to_another_guess(without_gpu, statement, line):
    text = (
        f"{TRITON}def led(x, y, at, n, p, BLOCK: tl.constexpr, RATE: tl.constexpr):\n"
        "    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    i = tl.load(at + o, mask=o < n)\n"
        f"    v = tl.load(x + i, mask=o < n)\n    {statement}\n    tl.store(y + o, v, mask=o < n)\n"
    )
    (without_gpu.path / "led.py").write_text(text)
    done = without_gpu.run("new", "led.py")
    assert "\ngood  the default compiles for sm_90\n" in done.stdout, done.stdout
    assert line in (without_gpu.path / "led.yaml").read_text()


def test_a_line_shows_before_anything_is_read(folder):
    """In a process of its own, whose source waits: the line is there although nothing can be read."""
    os.mkfifo(folder.path / "stalls.cl")
    process = folder.start("new", "stalls.cl")
    try:
        assert process.stderr.readline() == "reading stalls.cl, 0:00\n"
    finally:
        process.send_signal(signal.SIGTERM)  # SIGINT is ignored below a job in the background
        out, err = process.communicate(timeout=60)
    assert process.returncode == 143, out + err


def test_the_command_imports_neither_numpy_nor_yaml_for_itself(root):
    program = (
        "import sys, autotune.cli.progress, autotune.cli.new, autotune.drafting.first_space\n"
        "print({'numpy', 'yaml', 'pyopencl', 'triton'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_a_kernel_without_arguments_gives_way_to_one_that_has_some(folder):
    text = "__kernel void nothing(void) { }\n" + CALM
    (folder.path / "two.cl").write_text(text)
    done = folder.run("new", "two.cl")
    assert done.returncode == 0 and done.stdout.startswith(
        "copy, nothing: dialect opencl; the space is for copy;"
    )


def test_a_header_that_is_needed_is_taken_from_another_folder_of_the_project(folder):
    inside = folder.path / "src" / "kernels"
    (folder.path / "include" / "own").mkdir(parents=True)
    inside.mkdir(parents=True)
    (folder.path / ".git").mkdir()
    (folder.path / "include" / "own" / "scale.h").write_text("#define SCALED(a) (2 * (a))\n")
    (inside / "copy.cl").write_text('#include "own/scale.h"\n' + CALM.replace("x[i]", "SCALED(x[i])"))
    done = folder.run("new", "src/kernels/copy.cl")
    assert done.returncode == 0 and "good  the default took " in done.stdout
    assert "include_dirs: [../../include" in (inside / "copy.yaml").read_text()


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        ("#if GAP != 2\nwrong gap!\n#endif\n__kernel void fill(__global int *y) { y[0] = GAP; }", "GAP="),
        (
            "#define ROOM (WIDTH / 8)\n"
            "__kernel void fill(__global int *y) {\n  __local int t[ROOM - ROOM + WIDTH - WIDTH];\n"
            "  t[0] = 1; y[0] = t[0]; }",
            "WIDTH=",
        ),
    ],
)
def test_guesses_behind_the_line_of_an_error_are_named(folder, text, guess):
    (folder.path / "fill.cl").write_text(text)
    done = folder.run("new", "fill.cl")
    (line,) = (one for one in done.stdout.splitlines() if one.startswith("note  not compiled: "))
    assert guess in line and line.endswith("give what your program defines, with --define")
    assert "\nnext  mend what does not compile; autotune run fill.yaml --default tries it\n" in done.stdout
