"""How many kernel files of other projects autotune takes as they are, by repository and dialect.

    python benchmarks/foreign_sources.py FOLDER... [--results FILE] [--most N] [--sample N] [--seed TEXT]
        [--without FILE ...] [--dialects D ...] [--jobs N] [--limit-s S] [--list | --table | --causes]

Each FOLDER is a checkout of a project, and its name is that of a row. Every file in it with a kernel counts:
files under OpenCL's and CUDA's suffixes, and Python with a function under `@triton.jit` or with a kernel in a
string. A repository gives `--most` files of a dialect, and `--sample` limits each dialect: both always the
same ones of a `--seed`, and the latter from all files alike, so that large projects weigh more. `--without`
names results of files that are passed over, such as those that the code was mended by.

A file is measured as its user would: in a copy of its folder, in processes of their own and on a terminal,
`autotune new FILE` writes a space, and then the default of that space runs on the CPU (OpenCL, `autotune
run`) or is compiled for sm_90 (CUDA and Triton, `autotune space --compile`). Both have the limit S. Folders
of headers that the tree has elsewhere are named where `new` has an option for them, and packages of the
repository count as installed.

Some files cannot be taken here, whoever reads them. These are told apart by their tree or by the words of a
failure, never by a list of names: an include that neither the repository nor a toolkit has, a Python package
that is not installed, another version of Triton, images and textures, functions of another vendor, and
Triton's functions for the device without a kernel. The first are left out even if they work, the last if
`new` refuses them in a line, the others if they fail. What hangs or ends in a traceback always counts. The
tables count all of them.

Results are added to FILE, so a long run continues where it stopped. `--list` prints the files as lines of
DIALECT and PATH, `--table` only the tables of FILE, `--causes` its most frequent failures.
"""

from __future__ import annotations

import argparse
import ast
import fcntl
import hashlib
import importlib.util
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import tempfile
import termios
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import median, quantiles

from autotune.compilers.cuda_headers import is_cuda_header

ROOT = Path(__file__).parents[1]
AUTOTUNE = [str(Path(sys.executable).with_name("autotune"))]
DIALECTS = ("opencl", "cuda", "triton")
LARGEST = 4 << 20  # bytes of a file that is looked at
_SUFFIXES = {"opencl": (".cl", ".opencl", ".ocl", ".clh", ".py"), "cuda": (".cu", ".cuh", ".py")}
_KERNELS = {
    "opencl": re.compile(r"(?:\b__kernel\b|\bkernel\s+(?:void|__attribute__)\b)[^;{]*\{"),
    "cuda": re.compile(r"\b__global__\b[^;{]*\{"),
}
_COMMENT = re.compile(r"//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>])")
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|endif)\b", re.MULTILINE)
_OF_TOOLKIT = re.compile(  # libraries of CUDA's toolkit, which need not be installed to compile kernels
    r"(?:.*/)?(?:cu(?:blas|fft|solver|sparse|rand|pti|file|dla)|npp|nv(?:ml|jpeg|rtc|JitLink|ToolsExt|tx))\w*\.h"
)
_SAID_IMAGE = re.compile(r"\b(?:image|texture|sampler|surface)(?:s\b|\b|\w*_t\b|\w*<)", re.IGNORECASE)
_IMAGES = re.compile(
    r"\bimage[123]d\w*|\bsampler_t|\b(?:read|write)_image\w*|\btexture|\bsurface|\btex[123]D|"
    r"\bcuda(?:Texture|Surface)Object_t"
)
_VENDORS = re.compile(r"\b(?:\w*_)?(?:qcom|intel|amd|amdgcn|arm|nv|nvidia|ARM|INTEL|AMD|NV|QCOM)_\w+")
_NO_PACKAGE = re.compile(r"No module named '([\w.]+)'")
_OTHER_TRITON = re.compile(  # what only older versions take
    r"Block pointers have been removed|\*\*meta parameters|unexpected keyword argument 'trans_[ab]'"
)


@dataclass(frozen=True)
class Source:
    """A file with a kernel, in the folder of its repository."""

    repository: Path
    path: Path
    dialect: str

    @property
    def name(self) -> str:
        """The file below its repository, with the repository's name."""
        return f"{self.repository.name}/{self.path.relative_to(self.repository)}"


@dataclass(frozen=True)
class Said:
    """What a command printed on its terminal, and in what time; the code is None for one that was stopped."""

    code: int | None
    lines: tuple[str, ...]
    first_s: float
    total_s: float


@dataclass(frozen=True)
class Result:
    """What became of a file.

    Attributes:
        outcome: `works`, `fails` (its default does not compile or run), `does not load`, `refused`, `silent`
            (no space and no line), `hung` or `traceback`.
        apart: Why the file is not counted; empty for one that counts.
        line: The line that the user reads of the outcome.
        first_s: Until `new` printed something.
        new_s: Until `new` ended.
        default_s: What the default took after that, with loading; 0 without a space.
    """

    dialect: str
    repository: str
    path: str
    outcome: str
    apart: str
    line: str
    first_s: float
    new_s: float
    default_s: float


def kernel_files(repository: Path, most: int, seed: str, without: Collection[str]) -> list[Source]:
    """The files of a repository in which a plain search finds a kernel, the first of a fixed order.

    Files are passed over whose names are in `without`.
    """
    found = defaultdict(list)
    for path in sorted(repository.rglob("*")):
        is_own = path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST
        if is_own and not _is_test(path, repository) and (dialect := _dialect(path)):
            found[dialect].append(Source(repository, path, dialect))
    fresh = ([one for one in sources if one.name not in without] for sources in found.values())
    return [one for sources in fresh for one in _first(sources, most, seed)]


def _first(sources: Iterable[Source], most: int | None, seed: str) -> list[Source]:
    """The first of them in an order that is random and always the same of a seed."""
    return sorted(sources, key=lambda one: hashlib.sha256((seed + one.name).encode()).digest())[:most]


def _dialect(path: Path) -> str:
    if not any(path.suffix in suffixes for suffixes in _SUFFIXES.values()):
        return ""
    text = path.read_text(encoding="latin-1")
    if path.suffix == ".py":
        if _has_triton(text):
            return "triton"
        text = "\n".join(one for one in _strings(text) if "{" in one and "void" in one)
    text = _COMMENT.sub(" ", text)
    fitting = (name for name, suffixes in _SUFFIXES.items() if path.suffix in suffixes)
    return next((name for name in fitting if _KERNELS[name].search(text)), "")


def _has_triton(text: str) -> bool:
    """True if a text in Python has a function under Triton's own `jit`, and not only in a string."""
    if "triton" not in text or "jit" not in text:
        return False
    with suppress(SyntaxError, ValueError):
        parts = [*ast.walk(ast.parse(text))]
        names = {
            item.asname or item.name
            for node in parts
            if isinstance(node, ast.ImportFrom) and node.module in ("triton", "triton.runtime.jit")
            for item in node.names
            if item.name == "jit"
        }
        decorators = (
            one for node in parts if isinstance(node, ast.FunctionDef) for one in node.decorator_list
        )
        return any(ast.unparse(getattr(one, "func", one)) in {"triton.jit", *names} for one in decorators)
    return False


def _strings(text: str) -> Iterator[str]:
    """The strings in a text in Python; none if it is not Python."""
    with suppress(SyntaxError, ValueError):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def _is_test(path: Path, repository: Path) -> bool:
    """True for a test in Python: its kernel is elsewhere, or made to be wrong."""
    parts = path.relative_to(repository).parts
    return path.suffix == ".py" and (
        path.name.startswith("test_") or {"test", "tests"} & {*parts[:-1]} != set()
    )


def shadow(source: Source, folder: Path) -> Path:
    """Rebuild a repository in a folder, of the same files; returns the source in it."""

    def linked(file: str, copy: str) -> None:
        try:
            os.link(file, copy, follow_symlinks=False)
        except OSError:  # on another disk
            shutil.copy(file, copy, follow_symlinks=False)

    ignored = shutil.ignore_patterns(".git")
    shutil.copytree(source.repository, folder, symlinks=True, ignore=ignored, copy_function=linked)
    (folder / ".git").mkdir()  # where a repository ends
    return folder / source.path.relative_to(source.repository)


def on_terminal(command: Sequence[str], folder: Path, limit_s: float, environment: dict[str, str]) -> Said:
    """Run a command on a wide terminal, in a session of its own, and stop it at the limit."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 2000, 0, 0))
    began, first_s, read = time.monotonic(), 0.0, bytearray()
    child = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=its,
        stderr=its,
        start_new_session=True,
    )
    os.close(its)
    try:
        while (left_s := began + limit_s - time.monotonic()) > 0:
            if not select.select([ours], [], [], min(left_s, 0.5))[0]:
                continue
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # the last process that had the terminal ended
                part = b""
            if not part:
                break
            read += part
            if not first_s and _ESCAPE.sub("", part.decode(errors="replace")).strip():
                first_s = time.monotonic() - began
        code = child.wait(max(began + limit_s - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        code = None
    finally:
        with suppress(ProcessLookupError):  # its children go with it
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        os.close(ours)
    total_s = time.monotonic() - began
    text = _ESCAPE.sub("", read.decode(errors="replace")).replace("\r\n", "\n")
    lines = tuple(line.rpartition("\r")[2].rstrip() for line in text.split("\n"))
    return Said(code, tuple(filter(str.strip, lines)), first_s or total_s, total_s)


def measure(source: Source, limit_s: float, options: str) -> Result:
    """Measure one file in a temporary folder; `options` is the help of `new`, whose options are used."""
    includes = _Includes(source)
    with tempfile.TemporaryDirectory(prefix="foreign-") as home:
        environment = os.environ | {"XDG_CACHE_HOME": f"{home}/cache", "TERM": "xterm", "NO_COLOR": "1"}
        folders = [ROOT, *_packages(source)] if source.dialect == "triton" else [ROOT]
        environment["PYTHONPATH"] = os.pathsep.join(map(str, folders))
        file = shadow(source, Path(home) / source.repository.name)
        command = [*AUTOTUNE, "new", file.name]
        if "--output" in options:
            command += ["--output", "first_space.yaml"]
        if "--include" in options:
            command += [word for folder in includes.folders for word in ("--include", str(folder))]
        before = set(file.parent.glob("*.y*ml"))
        new = on_terminal(command, file.parent, limit_s, environment)
        written = sorted(set(file.parent.glob("*.y*ml")) - before)
        outcome, line, default_s = _refusal(new), _told(new.lines), 0.0
        if written and outcome in ("refused", "silent", ""):
            began = time.monotonic()
            outcome, line = _default(source.dialect, written[0], limit_s, environment)
            default_s = time.monotonic() - began
    words = " ".join((line, *new.lines))
    return Result(
        source.dialect,
        source.repository.name,
        str(source.path.relative_to(source.repository)),
        outcome,
        _apart(source, outcome, includes.elsewhere, words),
        line.replace(f"{home}/", "")[:400],
        round(new.first_s, 2),
        round(new.total_s, 2),
        round(default_s, 2),
    )


def _refusal(new: Said) -> str:
    """The outcome of `new`, if it wrote no space."""
    if new.code is None:
        return "hung"
    if any(line.startswith("Traceback (most recent call last)") for line in new.lines):
        return "traceback"
    return "refused" if any(line.startswith("autotune: ") for line in new.lines) else "silent"


def _told(lines: Sequence[str]) -> str:
    """The line of what `new` printed that says why it did not end well."""
    starts = ("autotune: ", "note  the default", "note  ")
    told = (line for start in starts for line in lines if line.startswith(start))
    return next(told, lines[-1] if lines else "")


def _default(dialect: str, space: Path, limit_s: float, environment: dict[str, str]) -> tuple[str, str]:
    """The outcome of a space's default, and its line."""
    if dialect == "opencl":
        command = [*AUTOTUNE, "run", space.name, "--default", "--device", "opencl:0", "--json", "--quiet"]
    else:
        command = [
            *AUTOTUNE,
            "space",
            space.name,
            "--compile",
            "--device",
            "sm_90",
            "--budget",
            "1",
            "--json",
        ]
    child = subprocess.Popen(
        command,
        cwd=space.parent,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, said = child.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return "hung", f"the default had not ended after {limit_s:g} s"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    if "Traceback (most recent call last)" in said:
        return "traceback", said.strip().splitlines()[-1]
    told = _told(said.splitlines())
    try:
        [answer] = json.loads(out)
    except ValueError:
        return "does not load", told
    if dialect == "opencl":
        failed = "" if answer["status"] == "ok" else f"{answer['status']}: {answer['detail']}"
    else:
        details = [line for one in answer["configurations"] for line in one["detail"].splitlines()]
        failed = "" if answer["compile"] else " ... ".join(dict.fromkeys((told, *details[-1:])))
    return ("fails", " ".join(failed.split())) if failed else ("works", "")


class _Includes:
    """The includes of a file and of those that it reaches in its repository.

    Attributes:
        folders: Where the tree has those that are not found from the file that includes them.
        elsewhere: Why the file cannot be compiled from this tree; empty if it can.
    """

    def __init__(self, source: Source) -> None:
        self.folders: list[Path] = []
        self.elsewhere = ""
        self._repository, self._dialect = source.repository, source.dialect
        if source.path.suffix != ".py":
            self._read(source.path, set())

    def _read(self, path: Path, seen: set[Path]) -> None:
        seen.add(path)
        for name in _unconditional(_COMMENT.sub(" ", path.read_text(encoding="latin-1"))):
            found = self._find(path.parent, name)
            if found is not None and found not in seen:
                self._read(found, seen)
            elif found is None and not self._is_of_toolkit(name):
                self.elsewhere = self.elsewhere or f"an include from elsewhere: {name}"

    def _find(self, folder: Path, name: str) -> Path | None:
        if (near := folder / name).is_file():
            return near.resolve()
        ending = Path(os.path.normpath(name)).parts
        ending = tuple(part for part in ending if part != "..")
        fitting = [
            one
            for one in _by_name(self._repository).get(ending[-1], ())
            if one.parts[-len(ending) :] == ending
        ]
        if not fitting or self._is_of_toolkit(name):
            return None
        nearest = max(fitting, key=lambda one: len(os.path.commonpath((one, folder))))
        root = nearest.parents[len(ending) - 1]
        if root not in self.folders:
            self.folders.append(root)
        return nearest

    def _is_of_toolkit(self, name: str) -> bool:
        return self._dialect == "cuda" and (
            is_cuda_header(name)
            or _OF_TOOLKIT.fullmatch(name) is not None
            or any((one / name).is_file() for one in _system())
        )


def _unconditional(text: str) -> Iterator[str]:
    """The names that a text includes outside of conditions, but for a guard around the whole of it."""
    depth, is_guarded, is_first = 0, False, True
    for line in text.split("\n"):
        if condition := _CONDITION.match(line):
            is_guarded = is_guarded or (is_first and condition[1] != "endif")
            depth += -1 if condition[1] == "endif" else 1
        elif (include := _INCLUDE.match(line)) and depth <= is_guarded:
            yield include[2].strip()
        is_first = is_first and (not line.strip() or "pragma" in line)


@cache
def _by_name(repository: Path) -> dict[str, list[Path]]:
    """The files of a repository by their names: anything may be included."""
    found = defaultdict(list)
    for path in repository.rglob("*"):
        if path.is_file():
            found[path.name].append(path)
    return dict(found)


@cache
def _system() -> tuple[Path, ...]:
    """The folders of the host compiler's headers, and of the CUDA toolkit that CUDA_HOME names."""
    triplet = sysconfig.get_config_var("MULTIARCH") or ""
    usual = Path("/usr/include")
    library = [*usual.glob("c++/*"), *Path("/usr/lib/gcc").glob("*/*/include")]
    toolkit = [Path(home) / "include"] if (home := os.environ.get("CUDA_HOME")) else []
    return (*toolkit, usual, usual / triplet, *library)


@cache
def _all_packages(repository: Path) -> frozenset[Path]:
    inits = {path.parent for path in repository.rglob("__init__.py")}
    hiding = {one.parent for one in inits if one.name == "triton" or one.name in sys.stdlib_module_names}
    return frozenset(one.parent for one in inits if one.parent not in {*inits, *hiding})


def _packages(source: Source) -> list[Path]:
    """The folders that an installation would put on Python's path; none hides Triton or Python's own."""
    return sorted(_all_packages(source.repository))


def _apart(source: Source, outcome: str, elsewhere: str, words: str) -> str:
    """Why a file does not count; empty if it does."""
    text = source.path.read_text(encoding="latin-1")
    if outcome in ("hung", "traceback"):  # no file may end so
        return ""
    if elsewhere or outcome == "works":
        return elsewhere
    if source.dialect == "triton" and outcome == "refused" and not _writes(text):
        return "functions for the device alone"
    if source.dialect == "triton" and (other := _other_triton(text, words)):
        return f"another version of Triton: {other}"
    if package := _NO_PACKAGE.search(words):
        top = package[1].partition(".")[0]
        return "" if top in sys.stdlib_module_names or _binds_triton_only(text, top) else f"a package: {top}"
    if source.dialect != "triton":
        if _SAID_IMAGE.search(words) and (image := _IMAGES.search(text)):
            return f"images or textures: {image[0]}"
        if vendor := next((one for one in _VENDORS.finditer(words) if one[0] in text), None):
            return f"another vendor's functions: {vendor[0]}"
    return ""


def _other_triton(text: str, words: str) -> str:
    """What a failure or a file names that the installed Triton lacks; empty if there is nothing."""
    if said := _OTHER_TRITON.search(words):
        return said[0]
    imports = [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = [node.module or "" for node in imports if isinstance(node, ast.ImportFrom) and not node.level]
    modules += [item.name for node in imports if isinstance(node, ast.Import) for item in node.names]
    own = (name for name in modules if name.partition(".")[0] == "triton")
    return next((name for name in own if not _is_there(name)), "")


def _is_there(module: str) -> bool:
    """Whether a module of an installed package can be imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def _writes(text: str) -> bool:
    """True if functions for the device may write at a program's place, or if that cannot be read."""
    try:
        functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    except SyntaxError:
        return True
    jitted = [one for one in functions if any("jit" in ast.unparse(node) for node in one.decorator_list)]
    calls = [node for one in jitted for node in ast.walk(one) if isinstance(node, ast.Call)]
    names = [ast.unparse(call.func).rpartition(".")[2] for call in calls]
    is_written = any("store" in name or name.startswith("atomic_") for name in names)
    return not jitted or (is_written and "program_id" in names)


def _binds_triton_only(text: str, package: str) -> bool:
    """True if all that a file imports of a package is Triton itself, under whatever name."""
    names = set()
    with suppress(SyntaxError):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == package:
                names |= {one.name for one in node.names}
            if isinstance(node, ast.Import):
                names |= {one.name for one in node.names if one.name.partition(".")[0] == package}
    return bool(names) and names <= {"tl", "triton", "language", "libdevice", "tldevice"}


def measured(file: Path | None) -> list[Result]:
    """The results of a file."""
    if file is None or not file.exists():
        return []
    return [Result(**json.loads(line)) for line in file.read_text().splitlines()]


def print_tables(results: Sequence[Result]) -> None:
    """Print a table by dialect and repository, why files do not count, and the times."""
    columns = (
        "files",
        "apart",
        "counted",
        "loads",
        "works",
        "share",
        "fails",
        "refused",
        "silent",
        "hung",
        "traceback",
    )
    print(f"| dialect | repository | {' | '.join(columns)} |")
    print(f"|---|---|{'---:|' * len(columns)}")
    for dialect in DIALECTS:
        own = [one for one in results if one.dialect == dialect]
        for repository in sorted({one.repository for one in own}):
            _print_row(dialect, repository, [one for one in own if one.repository == repository])
        if own:
            _print_row(dialect, "together", own)
    print()
    for dialect in DIALECTS:
        kinds = Counter(
            one.apart.partition(":")[0] for one in results if one.apart and one.dialect == dialect
        )
        working = sum(one.outcome == "works" for one in results if one.apart and one.dialect == dialect)
        if kinds:
            print(f"{dialect}, apart: {dict(kinds.most_common())}; {working} of them work all the same")
    for name in ("first_s", "new_s", "default_s"):
        times = sorted(getattr(one, name) for one in results if getattr(one, name))
        if len(times) > 1:
            late = quantiles(times, n=100, method="inclusive")
            most = f"95% {late[94]:.1f}, 99% {late[98]:.1f}, most {times[-1]:.1f}"
            print(f"{name}: median {median(times):.1f}, {most}")


def _print_row(dialect: str, repository: str, results: Sequence[Result]) -> None:
    counted = [one for one in results if not one.apart]
    outcomes = Counter(one.outcome for one in counted)
    share = f"{outcomes['works'] / len(counted):.0%}" if counted else "-"
    loads = outcomes["works"] + outcomes["fails"]
    failing = (outcomes["fails"] + outcomes["does not load"], *(outcomes[one] for one in _ENDS))
    row = (len(results), len(results) - len(counted), len(counted), loads, outcomes["works"], share, *failing)
    print(f"| {dialect} | {repository} | {' | '.join(map(str, row))} |")


_ENDS = ("refused", "silent", "hung", "traceback")
_DETAIL = re.compile(
    r"'[^']*'|\"[^\"]*\"|\S*/\S*|\S+:\d+(?::\d+)?|\b\d[\d,.]*\b|\b\w+\.(?:cu|cuh|cl|py|h|yaml)\b"
)


def print_causes(results: Sequence[Result], most: int = 10) -> None:
    """Print the most frequent failures of each dialect that count, with examples."""
    for dialect in DIALECTS:
        failed = [
            one for one in results if one.dialect == dialect and not one.apart and one.outcome != "works"
        ]
        kinds = defaultdict(list)
        for one in failed:
            kinds[one.outcome, " ".join(_DETAIL.sub("…", one.line).split()[:14])].append(one)
        print(f"## {dialect}: {len(failed)} failures that count\n")
        for (outcome, _), alike in sorted(kinds.items(), key=lambda item: -len(item[1]))[:most]:
            print(f"{len(alike)} {outcome}: {alike[0].line[:240]}")
            for one in alike[:2]:
                print(f"    {one.repository}/{one.path}")
        print()


def _chosen(parsed: argparse.Namespace) -> Iterator[Source]:
    """The files to measure."""
    without = {f"{one.repository}/{one.path}" for file in parsed.without for one in measured(file)}
    folders = (folder.resolve() for folder in parsed.folders)
    every = [one for folder in folders for one in kernel_files(folder, parsed.most, parsed.seed, without)]
    for dialect in parsed.dialects:
        yield from _first((one for one in every if one.dialect == dialect), parsed.sample, parsed.seed)


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--results", type=Path, metavar="FILE")
    parser.add_argument("--most", type=int, default=40, help="files of a repository and dialect (default 40)")
    parser.add_argument("--sample", type=int, metavar="N", help="files of a dialect (default: all)")
    parser.add_argument("--seed", default="", metavar="TEXT", help="of the order of the files (default none)")
    parser.add_argument("--without", nargs="+", type=Path, default=(), metavar="FILE")
    parser.add_argument("--dialects", nargs="+", choices=DIALECTS, default=DIALECTS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit-s", type=float, default=90.0, metavar="S")
    only = parser.add_mutually_exclusive_group()
    for name in ("list", "table", "causes"):
        only.add_argument(f"--{name}", action="store_true")
    return parser.parse_args()


def _measured_anew(sources: Sequence[Source], parsed: argparse.Namespace) -> Iterator[Result]:
    """The results of files, each as soon as it is there and added to the file of the results."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    helped = subprocess.run(
        [*AUTOTUNE, "new", "--help"], env=environment, capture_output=True, text=True, check=True
    )
    with ThreadPoolExecutor(parsed.jobs) as pool:
        for done in pool.map(lambda one: measure(one, parsed.limit_s, helped.stdout), sources):
            why = done.apart or done.line[:150]
            print(f"{done.outcome:<13} {done.repository}/{done.path}: {why}", file=sys.stderr)
            if parsed.results:
                with parsed.results.open("a") as file:
                    file.write(json.dumps(asdict(done)) + "\n")
            yield done


def main() -> None:
    """Measure what is not in the results yet, and print the tables."""
    parsed = _parsed()
    results = measured(parsed.results)
    known = {f"{one.repository}/{one.path}" for one in results}
    if parsed.list:
        print("\n".join(f"{one.dialect}\t{one.path}" for one in _chosen(parsed)))
    elif parsed.causes:
        print_causes(results)
    else:
        if not parsed.table:
            results += _measured_anew([one for one in _chosen(parsed) if one.name not in known], parsed)
        print_tables(results)


if __name__ == "__main__":
    main()
