"""Mistakes of a first hour: what is said about each is recorded in `tests/golden/newcomers.txt`.

A message names the file, the place, what was expected and what to do. Read the file after a change:
`python -m tests.unit.test_newcomers` writes it again.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from autotune.compilers.source_text import read_source
from autotune.devices.listing import find_devices
from autotune.errors import SpaceError
from autotune.evaluation.evaluator import BY_MACHINE
from autotune.space import bind, lint_source, load_space, problem_of
from tests.conftest import ROOT, Folder, run_in_process
from tests.space_example import GPU

RECORDED = ROOT / "tests/golden/newcomers.txt"
STUMBLES = ROOT / "tests/first_hour.md"
AXPY = ROOT / "tests/golden/newcomer"  # the tutorial's kernel, space and reference
SPACE = ()  # no command: what reading the space says, or the findings about its source
SEARCH = ("search", "double.yaml", "-d", "fake")
BLOCK_SIZES, DEFAULT = "[32, 64, 128, 256, 512]", "{BLOCK_SIZE: 256, WORK_PER_THREAD: 4, ORDER: contiguous}"
SIZES = """sizes:
  default: {n: 67_108_864}
  cpu: {n: 4_194_304}                             # what a CPU is tuned for
verify_sizes: [{n: 1}, {n: 4095}, {n: 8192}, {n: 12_289}]"""
WHOLE = '[:n] = 2 * x.view("int32")[:n]'
GRID, FILL = '"ceil_div(n, BLOCK_SIZE * WORK_PER_THREAD)"', "{uniform: [-1, 1]}"
PARAMETERS = "  BLOCK_SIZE: [32, 64, 128, 256, 512]\n  WORK_PER_THREAD: [1, 2, 4, 8]\n  ORDER: ["
ARGUMENTS = (AXPY / "axpy.yaml").read_text().partition("arguments:\n")[2].partition("launch:")[0]
RETURN = 'return {"y": 2 * inputs["x"]}'
CONSTRAINT = 'ORDER == "interleaved" or WORK_PER_THREAD > 1'


def yaml(old, new):
    return "axpy.yaml", old, new, SPACE


def reference(new):
    return "reference.py", RETURN, new, SEARCH


MISTAKES = {
    # YAML
    "a tab": yaml("  BLOCK_SIZE: [", "\tBLOCK_SIZE: ["),
    "a colon that is missing": yaml("BLOCK_SIZE: [", "BLOCK_SIZE ["),
    "a space that is missing": yaml("BLOCK_SIZE: [", "BLOCK_SIZE:["),
    "a bracket that is missing": yaml("512]", "512"),
    "indented too little": yaml("  BLOCK_SIZE: [", "BLOCK_SIZE: ["),
    "indented too far": yaml("  WORK_PER_THREAD: [", "   WORK_PER_THREAD: ["),
    "a space that does not break": yaml("  BLOCK_SIZE: [", "\u00a0 BLOCK_SIZE: ["),
    "an empty file": yaml(None, ""),
    "a key twice": yaml("kernel: axpy", "kernel: axpy\nkernel: axpy"),
    "a parameter twice": yaml("  WORK_PER_THREAD: [", "  BLOCK_SIZE: ["),
    "a parameter twice in the default": yaml("WORK_PER_THREAD: 4", "BLOCK_SIZE: 4"),
    "a misspelt key": yaml("verify:", "verfy:"),
    "a quote that is not closed in a line": yaml("kernel: axpy", 'kernel: "axpy'),
    "a quote that is not closed in a list": yaml(f"[{GRID}]", f"[{GRID[:-1]}]"),
    "a dash before one entry": yaml("  BLOCK_SIZE: [", "  - BLOCK_SIZE: ["),
    "a comma that is missing": yaml(None, '{"schema": 1,\n "source": "axpy.cu"\n "kernel": "axpy"}\n'),
    "a second document": yaml("parameters:", "---\nparameters:"),
    "a sign that begins nothing": yaml(f"- {CONSTRAINT}", "- @BLOCK_SIZE > 32"),
    "a schema in quotes": yaml("schema: 1", 'schema: "1"'),
    "a schema that is missing": yaml("schema: 1\n", ""),
    "a reference for a source": yaml("source: axpy.cu", "source: axpy.py"),
    "a source for a reference": yaml("reference: axpy.py", "reference: axpy.cu"),
    "a missing key": yaml("default: {BLOCK_SIZE", "landmarks: {BLOCK_SIZE"),
    "a kernel with a dash": yaml("kernel: axpy", "kernel: my-axpy"),
    # constraints
    "a list without dashes": yaml("  - BLOCK_SIZE <=", "  BLOCK_SIZE <="),
    "quotes of a word processor": yaml(CONSTRAINT, "ORDER == \u201cinterleaved\u201d"),
    "a quote that is not closed": yaml(CONSTRAINT, "ORDER == 'interleaved"),
    "a quote at the start": yaml(CONSTRAINT, '"interleaved" == ORDER'),
    "! for not": yaml(CONSTRAINT, '!(ORDER == "interleaved")'),
    "a condition of C": yaml(CONSTRAINT, "BLOCK_SIZE > 32 ? 1 : 0"),
    "a value that is not listed": yaml(CONSTRAINT, 'ORDER == "interleavd"'),
    "= to compare": yaml(CONSTRAINT, 'ORDER = "interleaved"'),
    "|| for or": yaml(CONSTRAINT, "BLOCK_SIZE > 32 || WORK_PER_THREAD > 1"),
    "&& for and": yaml(CONSTRAINT, "BLOCK_SIZE > 32 && WORK_PER_THREAD > 1"),
    "a text without quotes": yaml(CONSTRAINT, "ORDER == interleaved"),
    "a misspelt parameter": yaml(CONSTRAINT, "BLOKC_SIZE > 32"),
    "a function of Python": yaml(CONSTRAINT, "len(ORDER) > 3"),
    "a limit that is not there": yaml("device.max_threads_per_block", "device.max_threads"),
    "AND in capitals": yaml(CONSTRAINT, "BLOCK_SIZE > 32 AND WORK_PER_THREAD > 1"),
    "a comma for and": yaml(CONSTRAINT, "BLOCK_SIZE > 32, WORK_PER_THREAD > 1"),
    "a number for a condition": yaml(CONSTRAINT, "12"),
    "an if": yaml(CONSTRAINT, "if BLOCK_SIZE > 32: WORK_PER_THREAD > 1"),
    "an arrow": yaml(CONSTRAINT, "BLOCK_SIZE > 32 => WORK_PER_THREAD > 1"),
    "=< for <=": yaml(CONSTRAINT, "BLOCK_SIZE =< 32"),
    "a semicolon": yaml(CONSTRAINT, "BLOCK_SIZE > 32;"),
    "a lambda": yaml(CONSTRAINT, 'lambda c: c["BLOCK_SIZE"] > 32'),
    "a dictionary of parameters": yaml(CONSTRAINT, 'config["BLOCK_SIZE"] > 32'),
    "a colon to compare": yaml(CONSTRAINT, "{BLOCK_SIZE: 32}"),
    "a root": yaml(CONSTRAINT, "sqrt(BLOCK_SIZE) > 5"),
    "a limit without device": yaml("device.max_threads_per_block", "max_threads"),
    "a word of CUDA": yaml(CONSTRAINT, "BLOCK_SIZE % warpSize == 0"),
    "true as in YAML": yaml(CONSTRAINT, "BLOCK_SIZE > 32 or true"),
    "more than the device has": yaml("block: [BLOCK_SIZE]", "block: [BLOCK_SIZE * 64]"),
    "nothing is valid": yaml(CONSTRAINT, "BLOCK_SIZE > 1024"),
    # parameters and the default
    "a list in quotes": yaml("[32, 64, 128, 256, 512]", '"32, 64, 128"'),
    "a misspelt series": yaml("[32, 64, 128, 256, 512]", "power_of_two(32, 512)"),
    "a number for a list": yaml("[32, 64, 128, 256, 512]", "256"),
    "names and numbers": yaml("[32, 64, 128, 256, 512]", "[64, 256, auto]"),
    "a default that is not listed": yaml("{BLOCK_SIZE: 256", "{BLOCK_SIZE: 192"),
    "a default without a parameter": yaml("WORK_PER_THREAD: 4, ORDER", "ORDER"),
    "a default that breaks a constraint": (
        *("double.yaml", "default: {A: 1, B: 0}", "default: {A: 6, B: 2}"),
        SEARCH,
    ),
    "numbers in quotes": yaml(BLOCK_SIZES, '["32", "64", "128"]'),
    "a series that is not closed": yaml(BLOCK_SIZES, "range(1,8,2"),
    "a series in a list": yaml(BLOCK_SIZES, "[range(32, 513, 32)]"),
    "a series among numbers": yaml(BLOCK_SIZES, "[1, range(32, 513, 32)]"),
    "a series with one end": yaml(BLOCK_SIZES, "range(32)"),
    "two dots": yaml(BLOCK_SIZES, "32..512"),
    "a slice": yaml(BLOCK_SIZES, "32:512:32"),
    "round brackets": yaml(BLOCK_SIZES, "(32, 64, 128)"),
    "curly brackets": yaml(BLOCK_SIZES, "{32, 64, 128}"),
    "no values": yaml(BLOCK_SIZES, ""),
    "a value twice": yaml(BLOCK_SIZES, "[32, 64, 64]"),
    "a dash in a name": yaml("  BLOCK_SIZE: [", "  BLOCK-SIZE: ["),
    "a size for a parameter": yaml("  WORK_PER_THREAD: [", "  n: ["),
    "a list of parameters": yaml(PARAMETERS, PARAMETERS.replace("  ", "  - ")),
    "a list for a default": yaml(DEFAULT, "[256, 4, contiguous]"),
    "a list for a value": yaml("{BLOCK_SIZE: 256", "{BLOCK_SIZE: [256]"),
    "numbers with a unit": yaml("[1, 2, 4, 8]", "[1px, 4px]"),
    "a value in quotes": yaml("{BLOCK_SIZE: 256", '{BLOCK_SIZE: "256"'),
    # sizes
    "sizes without default": yaml(SIZES, "sizes: {n: 1024}"),
    "a list of sizes": yaml(SIZES, "sizes: [1024]"),
    "a list for a size": yaml("{n: 67_108_864}", "{n: [1024, 2048]}"),
    "a series for a size": yaml("{n: 67_108_864}", "{n: range(1, 8)}"),
    "sizes to verify without names": yaml("[{n: 1}, {n: 4095}, {n: 8192}, {n: 12_289}]", "[1, 4095]"),
    # arguments and launches
    "two arguments of ceil": yaml("ceil_div(n, BLOCK_SIZE *", "ceil(n, BLOCK_SIZE *"),
    "rounded down": ("double.yaml", "grid: [1]", 'grid: ["n // 16"]', SEARCH),
    "a grid without brackets": yaml(f"[{GRID}]", GRID),
    "a grid that is missing": yaml(f"grid: [{GRID}], ", ""),
    "a kernel for an entry": yaml("entry: axpy", "kernel: axpy"),
    "a launch without a dash": yaml("  - {entry: axpy", "  {entry: axpy"),
    "a number in a launch": yaml("[x, y, result, a, n]}", "[x, y, result, 2.5, n]}"),
    "a name for an argument": yaml("- {name: a, dtype: float32, value: 2.5}", "- a"),
    "arguments by name": yaml(ARGUMENTS, ARGUMENTS.replace("- {name: ", "").replace(", dtype", ": {dtype")),
    "a size for a shape": yaml("shape: [n], role: out", "size: [n], role: out"),
    "a role that is missing": yaml("shape: [n], role: out", "shape: [n]"),
    "no output": yaml("role: out", f"role: in, fill: {FILL}"),
    "a fill for an output": yaml("role: out", "role: out, fill: {constant: 0}"),
    "a fill without its ends": yaml(FILL, "uniform"),
    "a fill as a call": yaml(FILL, "uniform(-1, 1)"),
    "a fill with one end": yaml(FILL, "{uniform: 1}"),
    "a number for a fill": yaml(FILL, "0"),
    "zeros": yaml(FILL, "zeros"),
    "a tolerance for all": yaml("{rtol: 1e-5, atol: 1e-6}", "1e-5"),
    "another word for a tolerance": yaml("{rtol: 1e-5", "{tolerance: 1e-5"),
    "a role that is none": yaml("role: out", "role: output"),
    "an input without a fill": yaml(", fill: {uniform: [-1, 1]}", ""),
    "a misspelt fill": yaml("uniform", "unifrom"),
    "a number without a value": yaml("dtype: float32, value: 2.5", "dtype: float32"),
    "a size as a float": yaml("n: 67_108_864", "n: 1e6"),
    "a grid of Python": yaml("ceil_div(n, BLOCK_SIZE * WORK_PER_THREAD)", "math.ceil(n / BLOCK_SIZE)"),
    "a grid with fractions": ("double.yaml", "grid: [1]", "grid: [n / 16]", SEARCH),
    "a type of C": yaml("dtype: uint32", "dtype: unsigned int"),
    "a shape without brackets": yaml("shape: [n]", "shape: n"),
    "an argument that is not there": yaml("[x, y, result, a, n]}", "[x, y, out, a, n]}"),
    "a comma without quotes": yaml('"ceil_div(n, BLOCK_SIZE * WORK_PER_THREAD)"', "ceil_div(n, BLOCK_SIZE)"),
    "a size that is none": yaml("{n: 4095}", "{N: 4095}"),
    "a folder for a source": yaml("source: axpy.cu", "source: ."),
    "a source elsewhere": yaml("source: axpy.cu", "source: src/axpy.cu"),
    # what the source says
    "an empty source": ("double.py", None, "", SEARCH),
    "a misspelt include": ("axpy.cu", "portable.h", "portble.h", ("search", "axpy.yaml")),
    "a name twice": ("axpy.cu", "const float a,", "const float BLOCK_SIZE,", SPACE),
    "arguments in another order": yaml("[x, y, result, a, n]}", "[x, y, result, n, a]}"),
    "arguments in another order, searched": (
        "double.yaml",
        "arguments: [x, y, n]}",
        "arguments: [y, x, n]}",
        SEARCH,
    ),
    "a kernel without KERNEL": ("axpy.cu", "KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)", "void", SPACE),
    "a block for each element": yaml(f"[{GRID}]", "[n]"),
    "an endless loop": ("double.py", "    y", "    while True: pass\n    y", (*SEARCH, "--timeout", "0.5")),
    "a grid that is too small": ("double.py", WHOLE, WHOLE.replace(":n", ":min(n, 9)"), SEARCH),
    "an argument too few": yaml("[x, y, result, a, n]}", "[x, y, result, n]}"),
    "an argument of another type": yaml("name: a, dtype: float32", "name: a, dtype: float64"),
    "an entry that is not there": yaml("entry: axpy", "entry: axpi"),
    "a macro that nothing defines": (
        *("axpy.cu", "#if ORDER == ORDER_INTERLEAVED", "#if USE_CACHE && ORDER == ORDER_INTERLEAVED"),
        SPACE,
    ),
    "another name for a parameter": (
        "axpy.cu",
        "ORDER == ORDER_INT",
        "LAYOUT == ORDER_INT",
        SPACE,
    ),
    "a block without a second dimension": ("axpy.cu", "first + k * step", "first + THREAD_INDEX(y)", SPACE),
    "a parameter that the source lacks": ("axpy.cu", "#if ORDER == ORDER_INTERLEAVED", "#if 1", SPACE),
    "a macro of another name": ("double.py", "+ B +", "+ BLOCK +", SEARCH),
    "a parameter that the source defines": (
        *("axpy.cu", "KERNEL KERNEL_BLOCK", "#define BLOCK_SIZE 64\nKERNEL KERNEL_BLOCK"),
        SPACE,
    ),
    "a misspelt constant": ("axpy.cu", "ORDER_INTERLEAVED", "ORDER_INTERLEAVD", SPACE),
    # the reference
    "a reference without return": reference('y = 2 * inputs["x"]'),
    "a reference that raises": reference('return {"y": 2 * inputs["X"]}'),
    "a module that is missing": reference('import nowhere\n    return {"y": 2 * inputs["x"]}'),
    "a reference with attributes": reference('return {"y": 2 * inputs.x}'),
    "a reference without numpy": reference('return {"y": np.multiply(2, inputs["x"])}'),
    "a reference of another type": reference('return {"y": [0.5] * sizes["n"]}'),
    "a reference of another shape": reference('return {"y": 2 * inputs["x"][1:]}'),
    "a reference under another name": ("reference.py", "def reference", "def expected", SEARCH),
    "a tolerance that is too strict": (
        *("reference.py", RETURN, RETURN.replace("2 *", "2.000001 *")),
        ("search", "floats.yaml", "-d", "fake"),
    ),
    "a number that the reference does not have": ("double.yaml", "value: n}", "value: n - 1}", SEARCH),
    "a number among the inputs": reference('return {"y": inputs["factor"] * inputs["x"]}'),
    "an element that the kernel leaves alone": ("double.py", "[:n] =", "[1:n] =", SEARCH),
    "a wrong result": ("double.py", "2 * x.view", "1 + 2 * x.view", SEARCH),
    # the command line
    "a reference for a space": (None, None, None, ("search", "axpy.py")),
    "a folder for a space": (None, None, None, ("search", ".")),
    "a misspelt file": (None, None, None, ("search", "duble.yaml")),
    "a size given twice": (None, None, None, (*SEARCH, "--size", "n=10", "--size", "n=20")),
    "a file for a kernel's name": (None, None, None, ("best", "double.yaml", "-d", "fake")),
    "a space for a kernel": (None, None, None, ("new", "double.yaml")),
    "a kernel for a space": (None, None, None, ("search", "axpy.cu")),
    "a ladder without landmarks": (None, None, None, ("run", "axpy.yaml", "--landmarks", "-d", "opencl")),
    "a misspelt option": (None, None, None, (*SEARCH, "--bugdet", "20")),
    "a size without =": (None, None, None, (*SEARCH, "--size", "n", "100")),
    "a command of another tool": (None, None, None, ("tune", "axpy.yaml")),
    "an option of another tool": (None, None, None, (*SEARCH, "--trials", "3")),
    "two values of a configuration": (None, None, None, ("run", *SEARCH[1:], "--config", "A=1", "B=2")),
    "best of nothing": (None, None, None, ("best",)),
    "a type of C for a dtype": (None, None, None, (*SEARCH, "--dtype", "int")),
    "a space for a journal": (None, None, None, ("show", "axpy.yaml")),
    "a misspelt kernel": (None, None, None, ("new", "axpi.cu")),
    "a size without a number": (None, None, None, (*SEARCH, "--size", "1000")),
    "a type that the space lacks": (None, None, None, (*SEARCH, "--dtype", "float64")),
    "a strategy of an engine": (None, None, None, (*SEARCH, "--strategy", "genetic_algorithm")),
    "a GPU that is not here": (None, None, None, (*SEARCH[:2], "--device", "NVIDIA A100")),
    "a cache that is not there": (None, None, None, ("best", "axpy", "--cache", "cahce", "-d", "fake")),
}


def plain(text: str, path: Path) -> str:
    """What is said without the folders of this machine."""
    return text.replace(f"{path}/", "").replace(str(path), ".").replace(f"{ROOT}/", "")


def with_any_cpu(text: str) -> str:
    """The same text on every machine: where devices are listed, those of OpenCL are one, without a name."""
    start, listing, listed = text.partition("expected one of: ")
    names = listed.split(", ")
    own = {info.name for address, info in find_devices() if address.backend == "opencl"}
    if own.isdisjoint(names):
        return text
    known = dict.fromkeys(own, "CPU") | {name: "opencl:0" for name in names if name.startswith("opencl:")}
    return start + listing + ", ".join(sorted({known.get(name, name) for name in names}))


def said(case: str, path: Path) -> str:
    """How a command says that it failed, or what is found in the space and its source."""
    file, old, new, command = MISTAKES[case]
    Folder(path)
    shutil.copytree(AXPY, path, dirs_exist_ok=True)
    for name in ("double.yaml", "double.py"):
        floats = (path / name).read_text().replace("int32", "float32").replace("integers", "uniform")
        floats = floats.replace("name: n, dtype: float32", "name: n, dtype: int32")
        (path / name.replace("double", "floats")).write_text(floats.replace("double.py", "floats.py"))
    if file is not None:
        text = (path / file).read_text()
        assert old is None or old in text
        (path / file).write_text(new if old is None else text.replace(old, new, 1))
    if command:
        done = run_in_process(path, *command)
        assert done.returncode in (1, 2)
        error = done.stderr[done.stderr.index("autotune: ") :].replace(f"; {BY_MACHINE}", "")  # if busy
        return with_any_cpu(plain(error.strip(), path))
    try:
        spec = load_space(path / "axpy.yaml")
        space = bind(spec, GPU, problem_of(spec, GPU))
    except SpaceError as error:
        return plain(str(error), path)
    found = lint_source(space, read_source(spec.source).text)
    return plain("\n".join(map(str, found)), path)


def record() -> str:
    """Everything that is said, by mistake."""
    parts = []
    for case in MISTAKES:
        with tempfile.TemporaryDirectory() as folder:
            parts.append(f"## {case}\n{said(case, Path(folder))}\n")
    return "\n".join(parts)


def test_a_function_in_capitals_is_told_to_be_written_small(tmp_path):
    shutil.copytree(AXPY, tmp_path, dirs_exist_ok=True)
    source = (AXPY / "axpy.cu").read_text()
    (tmp_path / "axpy.cu").write_text(source.replace("a * x[", "ISNAN(a) * x["))
    done = run_in_process(tmp_path, "search", "axpy.yaml", "-d", "opencl", "--size", "n=64", "--budget", "1")
    assert "write isnan for ISNAN" in done.stderr


def test_a_source_without_the_portable_header_is_told_to_include_it(tmp_path):
    shutil.copytree(AXPY, tmp_path, dirs_exist_ok=True)
    source = (AXPY / "axpy.cu").read_text().replace('#include "portable.h"', "")
    (tmp_path / "axpy.cu").write_text(source)
    done = run_in_process(tmp_path, "search", "axpy.yaml", "-d", "opencl", "--size", "n=64", "--budget", "1")
    cause = (
        "axpy.cu:4: KERNEL comes from portable.h, which the source does not include\n  therefore the default"
    )
    assert done.returncode == 1 and cause in done.stderr
    assert done.stderr.endswith('\n  help: write #include "portable.h" at the top of axpy.cu\n')


@pytest.mark.parametrize(
    ("old", "new", "mend"),
    [
        (
            "BLOCK_INDEX(x)",
            "blockIdx.x",
            "  help: write BLOCK_INDEX(x) for blockIdx.x\n  help: or, for NVIDIA GPUs only, set",
        ),
        (
            "GLOBAL float *RESTRICT result",
            "float *RESTRICT result",
            "  help: write GLOBAL before the type of every",
        ),
        (
            "if (i < n)",
            "",
            "axpy.cu:18: thread (1, 0, 0) of block (0, 0, 0) writes element 4 of result, which has 1,",
        ),
        (
            "i < n",
            "i <= n",
            "at n=1; guard the access, or correct the shape of result",
        ),
    ],
)
def test_words_of_other_languages_and_missing_checks_in_a_source_are_told_with_what_to_write(
    tmp_path, old, new, mend
):
    assert mend in axpy_searched(tmp_path, "axpy.cu", old, new)


def axpy_searched(path, file, old, new):
    """What a search of the tutorial's kernel says about an edit."""
    shutil.copytree(AXPY, path, dirs_exist_ok=True)
    text = (path / file).read_text()
    assert old in text
    (path / file).write_text(text.replace(old, new))
    return run_in_process(
        path, "search", "axpy.yaml", "-d", "opencl", "--size", "n=64", "--budget", "1"
    ).stderr


def test_a_macro_whose_parameter_is_missing_is_told_to_be_added_and_not_taken_for_a_constant(tmp_path):
    said = axpy_searched(tmp_path, "axpy.yaml", "WORK_PER_THREAD", "ITEMS")
    assert (
        "  help: write ITEMS, which the source does not use yet, for WORK_PER_THREAD\n  help: or add " in said
    )
    mend = "`WORK_PER_THREAD: [...]` to `parameters` and one of its values to `default` in axpy.yaml"
    assert said.endswith(f"{mend}, or define it in axpy.cu\n")


def test_a_block_other_than_the_one_that_the_source_declares_is_told_with_the_one_to_write(tmp_path):
    said = axpy_searched(tmp_path, "axpy.yaml", "block: [BLOCK_SIZE]", "block: [64]")
    cause = r"axpy.yaml:\d+: launch\[0\].block gives \[64, 1, 1\], but axpy is declared for blocks of "
    assert re.search(rf"{cause}\[256, 1, 1\] in axpy.cu\n  therefore the default .* INVALID_WORK_GROUP", said)
    assert said.endswith("\n  help: write block: [BLOCK_SIZE]\n")


def test_line_ends_of_windows_and_a_byte_order_mark_are_no_mistakes(tmp_path):
    shutil.copytree(AXPY, tmp_path, dirs_exist_ok=True)
    text = "\ufeff" + (AXPY / "axpy.yaml").read_text().replace("\n", "\r\n")
    (tmp_path / "axpy.yaml").write_text(text, newline="")
    found, plain = load_space(tmp_path / "axpy.yaml"), load_space(AXPY / "axpy.yaml")
    assert (found.parameters, found.constraints, found.launch) == (
        *(plain.parameters, plain.constraints, plain.launch),
    )


@pytest.mark.parametrize("case", MISTAKES)
def test_a_newcomer_is_told_what_is_wrong_and_what_to_do(tmp_path, case):
    recorded = dict(part.split("\n", 1) for part in RECORDED.read_text().removeprefix("## ").split("\n## "))
    assert said(case, tmp_path).strip() == recorded[case].strip()


def test_every_stumble_of_the_list_has_its_test():
    rows = re.findall(r"^\| .* \| `(\S+)::(\w+)` \|$", STUMBLES.read_text(), re.MULTILINE)
    assert len(rows) > 50
    for file, name in rows:
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(), (file, name)


if __name__ == "__main__":
    sys.stdout.write(record()) if "-" in sys.argv else RECORDED.write_text(record())
