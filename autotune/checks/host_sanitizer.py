"""Runs a kernel on the CPU to find races, accesses out of bounds and reads of unwritten memory anywhere.

kernels/threads.h defines CUDA's words in C++, and kernels/opencl_words.h OpenCL C's. With them, three kinds
of kernels run, one fiber per thread: the portable dialect, plain CUDA C++ without textures or tensor cores,
and plain OpenCL C without images. A kernel runs twice: watched by kernels/races.h, with memory that starts as
zeros, and under AddressSanitizer, with memory that starts as ones. If the outputs differ, they depend on
memory that the kernel has not written. A caller may compare the arrays of the latter run with a reference.

The sizes of a workload are in a file: binaries are kept by the source, and serve other sizes, too. All are
linked with kernels/threads.cpp, which runs the threads.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from itertools import accumulate, takewhile
from pathlib import Path
from threading import Lock

import numpy as np

from autotune.compilers.binary_cache import BinaryCache, CachedCompiler, default_folder
from autotune.compilers.cuda_headers import DISPENSABLE
from autotune.compilers.elf import read_sections, read_symbols
from autotune.compilers.hidden_reads import HEADER_FOLDERS
from autotune.compilers.host_code import without_host_code
from autotune.compilers.source_text import packaged
from autotune.core import timeline
from autotune.core.outcomes import NO_TIME, PASSED, Outcome, Unchecked
from autotune.core.records import Launch
from autotune.core.text import size_text
from autotune.core.trials import Binary, Failure, Status
from autotune.devices.element_types import array_bytes, numpy_dtype
from autotune.errors import ChildDied, ChildFailed, ChildTimeout, CompileError, InputError
from autotune.evaluation.wrong_result import element_text
from autotune.problem.covering import threads
from autotune.problem.inputs import draw_inputs
from autotune.problem.workload import Array, Workload
from autotune.processes.command import run_command
from autotune.processes.deadline import Deadline
from autotune.processes.scratch_folder import scratch_folder
from autotune.sources.dialects import PORTABLE
from autotune.sources.edits import TextEdit, edited
from autotune.sources.tree import SourceTree, descendants, field

HOST_TOOLS = ("races on the CPU", "AddressSanitizer")
MAX_CPU_S = 10  # CPU time of one run; a busy machine takes longer
TIMEOUT_S = 180.0  # wall time of the compiler, and of one run, on a machine however busy
MAX_THREADS = 200_000  # of all problems: some 0.2 s of CPU time in each build; compiling takes twice as long
MAX_FURTHER_THREADS = 2**19  # of a problem at which loops have a second iteration
MAX_BYTES = 2**26  # arrays of one problem: they are written to files
FURTHER_LIMITS = f"{MAX_FURTHER_THREADS:,} threads or {MAX_BYTES >> 20} MiB"
_FOUND = 86  # the exit code of a finding
_OPTIONS = (
    *("-std=c++17", "-O1", "-g1", "-fno-pie", "-no-pie", "-ffp-contract=off", "-fpermissive", "-w"),
    "-D_GLIBCXX_BITS_SPECFUN_H",  # leaves out std::beta and the like, which take a third of the time
)
_ASKED = ("-dumpfullversion", "-dumpmachine")
_LIBRARIES = ("-lm", "-lc", "-lgcc")
_BUILDS = {
    "addresses": (
        "-fsanitize=address,alignment,bounds",
        "-fno-sanitize-recover=all",
        "-fno-tree-sink",  # reads are not moved
        "-ftrivial-auto-var-init=pattern",
    ),
    "races": (
        "-fsanitize=thread",
        "--param=tsan-distinguish-volatile=1",
        "--param=tsan-instrument-func-entry-exit=0",
        "-nodefaultlibs",  # without the compiler's own race detector
        "-ftrivial-auto-var-init=zero",
    ),
}
_SETTINGS = {
    "ASAN_OPTIONS": f"exitcode={_FOUND}:detect_leaks=0:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": f"exitcode={_FOUND}",
}
_OPENCL, _PORTABLE = re.compile(r"\b__kernel\b|\bget_\w+_id\b"), "#define PORTABLE_H\n"  # not PORTABLE_HALF_H
_DYNAMIC = re.compile(
    r"extern\s+(?:__align__\s*\([^)]*\)\s*)?__shared__\s+(?:__align__\s*\([^)]*\)\s*|alignas\s*\([^)]*\)\s*)?"
    r"([\w:][\w:\s]*?)\s*(\w+)\s*\[\s*\]\s*;"
)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<([^>]+)>", re.MULTILINE)
_OF_HOST_INCLUDE = re.compile(
    rf'^[ \t]*#[ \t]*include[ \t]*[<"](?:iostream|cuda\.h|{"|".join(map(re.escape, DISPENSABLE))})[>"]',
    re.MULTILINE,
)
_LOCAL = r"\b(?:__)?local\b"
_OPENCL_WORDS = (  # told apart by their place alone: pointers to shared memory, shared memory, vectors
    (re.compile(_LOCAL + r"(?=[\w\s]*\*)"), ""),
    (re.compile(_LOCAL + r"(?![^;{}()]*,\s*\*)"), "__shared__"),  # g++ refuses both in one declaration
    (
        re.compile(r"\(\s*((?:float|double|u?(?:char|short|int|long))(?:2|3|4|8|16))\s*\)\s*(?=\()"),
        r"autotune::make_vector<\1>",
    ),
)
_OWN_WORDS = {  # instead of portable.h's: shared memory has a size, copies take time, swaps are atomic
    "extern __shared__ __align__(16) type name[]": "__shared__ __align__(16) type name[count]",
    "#define COPY_ASYNC(target, source) (*(target) = *(source))": "#define COPY_ASYNC autotune::copy_async",
    "bits_type found = *bits, expected;": "bits_type found = atomicAdd((bits_type *)bits, 0), expected;",
    "#define COPY_COMMIT()\n": "#define COPY_COMMIT() autotune::end_group()\n",
    "#define COPY_WAIT(groups)\n": "#define COPY_WAIT(groups) autotune::wait_for_copies(groups)\n",
}
_FRAME = (  # the first entry of a report in the kernel's source: function, file and line
    r"(?:    #\d+ .*/(?:threads\.h|cuda_words\.h|opencl_words\.h|\w+\.(?:inc|cpp)):\d+.*\n)*"
    r"    #\d+ (?:0x\w+ in )?(?:void )?(?:\(anonymous namespace\)::)?(\w+).* (?:\S*/)?([^ /]+:\d+)"
)
_FENCES = (  # `volatile` orders nothing
    "; to hand over what a thread wrote, put a fence (MEMORY_FENCE, __threadfence, mem_fence) before its "
    "signal and another one between the signal and the reads"
)
_RACE = re.compile(r"^RACE: (.*) at (\w+) and (.*) at (\w+)$", re.MULTILINE)
_OUTSIDE = re.compile(r"^(?:==.* caused by a )?(READ|WRITE) .*\n" + _FRAME, re.MULTILINE)
_TRAP = re.compile(r"^==.*AddressSanitizer: (FPE|ILL|BUS|SEGV) .*\n(?:==.*\n)*" + _FRAME, re.MULTILINE)
_TRAPS = {"FPE": "a division by zero", "ILL": "an illegal instruction"}
_MISUSE = re.compile(r"^(?:\S*/)?([^ /:]+:\d+):\d+: runtime error: (.*?)(?: 0x\w+)?( for .*)?$", re.MULTILINE)
_ERROR = re.compile(r"^(?:\S*/)?([^ /]+:\d+:\d+: (?:fatal )?error: .*\S)", re.MULTILINE)
_BARRIER = re.compile(r"^BARRIER: (.*)$", re.MULTILINE)

_ENDED_BY_OTHERS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # the machine, or a user
_NO_MEMORY = 1  # the exit code of threads.cpp
_RUNTIME = "threads.cpp"
_one_runtime_at_a_time = Lock()

Compare = Callable[[Workload, Mapping[str, Path]], Outcome]  # of a run's arrays, in files by name


@dataclass(frozen=True)
class UnparsedEnd(Unchecked):
    """An end of the program that no report explains."""


def judged(outcome: Outcome, of_default: Outcome) -> Outcome:
    """The outcome of a configuration, where an unparsed end is a finding if the default has passed."""
    if isinstance(outcome, UnparsedEnd) and of_default is PASSED:
        return _finding(Status.WRONG_RESULT, outcome.reason)
    return outcome


@dataclass(frozen=True)
class _Compiler:
    """g++, which is killed with the processes of a deadline."""

    program: str
    deadline: Deadline
    runtime: bytes = b""  # the object that programs are linked with

    @property
    def identity(self) -> str | None:
        """All that a binary depends on besides source and options; None with folders of other headers."""
        if any(map(os.environ.get, HEADER_FOLDERS)):
            return None
        words = (*map(partial(program_version, self.program), _ASKED), *_OPTIONS, *_LIBRARIES)
        return " ".join((*words, sha256(_text(_RUNTIME).encode()).hexdigest()))

    def compile(self, source: str, options: Sequence[str], _: Sequence[str] = ()) -> Binary:
        """Compile a program and link it with the runtime; with the option -c, compile an object.

        Raises CompileError, with the first error if the compiler says one, and ChildFailed.
        """
        began_s = time.perf_counter()
        with scratch_folder() as name:
            source_file, program = Path(name) / "kernel.cpp", Path(name) / "kernel"
            source_file.write_text(source)
            runtime = Path(name) / "threads.o"
            runtime.write_bytes(self.runtime)
            files = (source_file, *([runtime] if self.runtime else ()), *_LIBRARIES, "-o", program)
            command = [self.program, *_OPTIONS, *options, *files]
            done = run_command(command, self.deadline, TIMEOUT_S)
            if done.returncode < 0:
                raise ChildDied("g++ was killed")
            if done.returncode:
                error = _ERROR.search(done.stderr)
                raise CompileError(f": {error[1]}" if error else "")
            data = program.read_bytes()
        return Binary(data, sha256(data).hexdigest(), "", (time.perf_counter() - began_s) * 1e3)


@dataclass(frozen=True)
class HostSanitizer:
    """A compiler with AddressSanitizer, and the folder in which its binaries are kept."""

    compiler: str
    binaries: Path

    @property
    def version(self) -> str:
        """The compiler's name and version."""
        return program_version(self.compiler, "-dumpfullversion")

    def check(
        self,
        source: str,
        workloads: Sequence[Workload],
        deadline: Deadline,
        further: Sequence[Workload] = (),
        compare: Compare | None = None,
    ) -> Outcome:
        """Run a rendered source on the smallest workloads; return the first finding, PASSED without one.

        The `further` workloads may be larger. With `compare`, what it finds in a workload's arrays counts.
        """
        chosen = [*workloads_for_cpu(workloads), *filter(can_run_on_cpu, further)]
        limits = f"more than {MAX_THREADS:,} threads or {MAX_BYTES >> 20} MiB"
        if not chosen:
            return Unchecked(f"all sizes need {limits}")
        left = sorted(_entries(workloads) - _entries(chosen))
        with scratch_folder() as name:
            folder = Path(name)
            try:
                outcome = without_host_code(
                    lambda text: self._check(text, folder, chosen, deadline, compare), source, (), PORTABLE
                )
            except CompileError as error:
                outcome = Unchecked(f"g++ refuses the source{error}")
            except ChildTimeout:
                return NO_TIME if deadline.is_over else Unchecked(f"took longer than {TIMEOUT_S:g} s")
            except ChildFailed as error:
                return Unchecked(str(error), is_late=True)
        if outcome is PASSED and left:
            return Unchecked(f"all sizes that launch {', '.join(left)} need {limits}")
        return outcome

    def _check(
        self,
        source: str,
        folder: Path,
        workloads: Sequence[Workload],
        deadline: Deadline,
        compare: Compare | None,
    ) -> Outcome:
        """The first finding, or the reason why a workload did not come to its end.

        Raises what `_Compiler.compile` does.
        """
        text = _program(source, workloads, folder)
        ended = dict(enumerate(workloads))  # that the builds so far ran to their end
        late: Outcome = PASSED
        for build in _BUILDS:
            program = folder / build / "kernel"
            program.parent.mkdir(exist_ok=True)
            with timeline.span(f"g++ for {build}"):
                with _one_runtime_at_a_time:  # others find it kept
                    runtime = self._compile(_text(_RUNTIME), (*_BUILDS[build], "-c"), deadline)
                program.write_bytes(self._compile(text, _BUILDS[build], deadline, runtime))
            program.chmod(0o700)
            variables = {"AUTOTUNE_SHARED": _shared_variables(program)}
            for number, workload in [*ended.items()]:
                with timeline.span(f"{build} at {size_text(workload.problem.sizes)}"):
                    outcome = _run(program, number, deadline, variables)
                if isinstance(outcome, Failure):
                    return _at(outcome, workload)
                if isinstance(outcome, UnparsedEnd):
                    outcome = replace(
                        outcome, reason=f"{outcome.reason} (at {size_text(workload.problem.sizes)})"
                    )
                if outcome is not PASSED:
                    late = outcome if late is PASSED else late
                    del ended[number]
        for number, workload in ended.items():
            if unwritten := _unwritten(folder, number, workload):
                return _at(unwritten, workload)
            outcome = compare(workload, _files(folder, number, workload)) if compare else PASSED
            if isinstance(outcome, Failure):
                return outcome
            late = outcome if late is PASSED else late
        return late

    def _compile(
        self, source: str, options: Sequence[str], deadline: Deadline, runtime: bytes = b""
    ) -> bytes:
        compiler = _Compiler(self.compiler, deadline, runtime)
        return CachedCompiler(compiler, BinaryCache(self.binaries)).compile(source, options).data


@cache
def program_version(program: str, option: str) -> str:
    """The name of a program and the last line that it prints with an option that asks for its version."""
    done = subprocess.run([program, option], capture_output=True, text=True, errors="replace")
    lines = done.stdout.strip().splitlines() or [""]
    return f"{Path(program).name} {lines[-1]}"


def find_host_sanitizer(binaries: Path | None = None) -> HostSanitizer | None:
    """Return the sanitizers of the host; None without g++.

    Without a folder for their binaries, they use that of all compilers.
    """
    compiler = shutil.which("g++")
    return HostSanitizer(compiler, binaries or default_folder()) if compiler else None


def workloads_for_cpu(workloads: Sequence[Workload]) -> list[Workload]:
    """The smallest workloads, as many as can run together on the CPU under sanitizers."""
    by_size = sorted((workload for workload in workloads if workload.size_bytes <= MAX_BYTES), key=threads)
    fitting = takewhile(lambda total: total <= MAX_THREADS, accumulate(map(threads, by_size)))
    return by_size[: len(list(fitting))]


def can_run_on_cpu(workload: Workload) -> bool:
    """True if a further workload can run there, for which more time is worth while."""
    return threads(workload) <= MAX_FURTHER_THREADS and workload.size_bytes <= MAX_BYTES


def _entries(workloads: Sequence[Workload]) -> set[str]:
    return {launch.entry for workload in workloads for launch in workload.launches}


def _with_own_words(source: str) -> str:
    """The source after the definitions that it needs, some of which replace its own.

    It is in an unnamed namespace: only then does g++ watch static variables in templates and inline
    functions.
    """
    source = _OF_HOST_INCLUDE.sub("", source)
    headers, source = _INCLUDE.findall(source), _INCLUDE.sub("", source)
    words = ["threads.h", "cuda_words.h"]
    if _PORTABLE in source:
        for word, replacement in _OWN_WORDS.items():
            source = source.replace(word, replacement)
    elif _OPENCL.search(source):
        headers, words = [], ["threads.h", "opencl_words.h"]  # any header is for CUDA
        for pattern, replacement in _OPENCL_WORDS:
            source = pattern.sub(replacement, source)
    else:
        source = _with_nested_calls(source)
        source = _DYNAMIC.sub(r"\1 *const \2 = (\1 *)autotune::dynamic_shared();", source)
    head = [f'#line 1 "{name}"\n{_text(name)}' for name in words]
    includes = [f"#include <{name}>" for name in headers]
    return "\n".join([*includes, *head, "namespace {", source, "}"])


@cache
def _text(name: str) -> str:
    """A header that is in front of sources, or the runtime with its headers."""
    text = (packaged("kernels") / name).read_text()
    return re.sub(r'^#include "(\w+\.h)"$', lambda included: _text(included[1]), text, flags=re.MULTILINE)


def _with_nested_calls(source: str) -> str:
    """The source with its kernels' launches as calls of cuda_words.h; unchanged if it cannot be read."""
    if "<<<" not in source:
        return source
    try:
        tree = SourceTree(source)
    except InputError:
        return source
    edits: list[TextEdit] = []
    for node in descendants(tree.root):
        kernel = field(node, "function")
        if kernel is not None and node.children[1].type == "kernel_call_syntax":
            begin, end = node.children[1].start_byte, node.children[1].end_byte
            name = tree.of(kernel)
            launched = f"autotune::launched([](auto... given) {{ {name}(given...); }}, "
            edits += [
                TextEdit(kernel.start_byte, begin + len("<<<"), launched),
                TextEdit(end - len(">>>"), end, ")"),
            ]
    return edited(source, edits)


def _shared_variables(program: Path) -> str:
    """The address and the size of each static variable in a function, in order; empty if it is stripped."""
    try:
        sections = read_sections(program.read_bytes())
        symbols = read_symbols(sections)
    except ValueError:
        return ""
    memory = {number for number, section in enumerate(sections) if section.name.startswith((".bss", ".data"))}
    variables = [symbol for symbol in symbols if symbol.section in memory and symbol.name.startswith("_ZZ")]
    places = sorted((symbol.value, symbol.size_bytes) for symbol in variables if symbol.size_bytes)
    return " ".join(f"{address:x} {size_bytes:x}" for address, size_bytes in places)


def _run(program: Path, number: int, deadline: Deadline, variables: dict[str, str]) -> Outcome:
    """Run a program on the workload of a number; raises ChildFailed."""
    command: list[str | Path] = [program, str(number)]
    settings = _SETTINGS | variables
    done = run_command(command, deadline, TIMEOUT_S, folder=program.parent, variables=settings)
    if done.returncode == 0:
        return PASSED
    if done.returncode == -signal.SIGXCPU:
        return Unchecked(f"took longer than {MAX_CPU_S} s of CPU time")
    if barrier := _BARRIER.search(done.stdout):
        return _finding(Status.WRONG_RESULT, barrier[1])
    if outside := _OUTSIDE.search(done.stderr):
        kind, function, line = outside.groups()
        return _finding(Status.OUT_OF_BOUNDS, f"{kind.lower()} outside of all arrays in {function} ({line})")
    if trap := _TRAP.search(done.stderr):
        kind, function, line = trap.groups()
        detail = _TRAPS.get(kind, "an access outside of all memory")
        return _finding(
            Status.OUT_OF_BOUNDS if kind in ("SEGV", "BUS") else Status.WRONG_RESULT,
            f"{detail} in {function} ({line})",
        )
    if misuse := _MISUSE.search(done.stderr):
        return _finding(Status.OUT_OF_BOUNDS, f"{misuse[2]}{misuse[3] or ''} ({misuse[1]})")
    if race := _RACE.search(done.stdout):
        kind, code, other_kind, other_code = race.groups()
        places = _place(program, code), _place(program, other_code)
        mend = _FENCES if {kind, other_kind} == {"atomic read", "write"} else ""
        detail = f"a race: {kind} in {places[0]} and {other_kind} in {places[1]}{mend}"
        return _finding(Status.WRONG_RESULT, detail)
    if done.returncode == -signal.SIGFPE:
        return _finding(Status.WRONG_RESULT, _TRAPS["FPE"])
    if "stack-overflow" in done.stderr:
        return Unchecked("a thread needs more memory than the CPU gives it")
    if done.returncode == _FOUND:
        error = next((line for line in done.stderr.splitlines() if "ERROR" in line or "error" in line), "")
        detail = error.partition("Sanitizer: ")[2] or error or "ended by a sanitizer"
        return _finding(Status.WRONG_RESULT, detail)
    if done.returncode == _NO_MEMORY or -done.returncode in _ENDED_BY_OTHERS:
        return Unchecked(f"the program ended with exit code {done.returncode}")
    code = signal.Signals(-done.returncode).name if done.returncode < 0 else str(done.returncode)
    said = done.stderr.strip().rpartition("\n")[2]  # such as the assertion that failed
    return UnparsedEnd(f"the program ended with {code}{': ' if said else ''}{said}")


def _place(program: Path, code: str) -> str:
    """The function, file and line of a machine instruction, outside autotune's headers."""
    words = ["addr2line", "-Cfise", str(program), code]
    frames = subprocess.run(words, capture_output=True, text=True).stdout.splitlines()
    for function, line in zip(frames[::2], frames[1::2], strict=False):
        if not line.startswith(("threads.h:", "cuda_words.h:", "opencl_words.h:")):
            name = function.removeprefix("void ").replace("(anonymous namespace)::", "")
            return f"{name.partition('(')[0]} ({line.partition(' ')[0]})"
    return f"the kernel at {code}"


def _unwritten(folder: Path, number: int, workload: Workload) -> Failure | None:
    """The difference between the outputs of both builds, as a finding; without the padding of structures."""
    for array in _saved(workload):
        if array.role != "out" or numpy_dtype(array.dtype).names:
            continue
        contents = [np.fromfile(folder / build / f"{number}.{array.name}", np.uint8) for build in _BUILDS]
        differs = np.flatnonzero(contents[0] != contents[1])
        if differs.size:
            where = element_text(array, int(differs[0]) // numpy_dtype(array.dtype).itemsize)
            return _finding(Status.WRONG_RESULT, f"{where} depends on memory that was never written")
    return None


def _files(folder: Path, number: int, workload: Workload) -> dict[str, Path]:
    """The files with the arrays of a workload, as the first build left them."""
    return {array.name: folder / next(iter(_BUILDS)) / f"{number}.{array.name}" for array in _saved(workload)}


def _finding(status: Status, detail: str) -> Failure:
    return Failure(status, f"run on the CPU: {detail}")


def _at(finding: Failure, workload: Workload) -> Failure:
    return replace(finding, detail=f"{finding.detail} (at {size_text(workload.problem.sizes)})")


def _saved(workload: Workload) -> list[Array]:
    """The arrays whose content after a run is known."""
    return [
        array for array in workload.arrays if array.role != "scratch" and array.name in workload.used_names
    ]


def _program(source: str, workloads: Sequence[Workload], folder: Path) -> str:
    """A program that runs any of the workloads, by its number: CUDA's words, the source and a main function.

    It has the names of their arrays and their calls of kernels; the rest is numbers in a file of each.
    """
    arrays = workloads[0].arrays  # of all of them, in other sizes
    places = {array.name: f"array_{array.name}" for array in arrays}
    lines = [f"static autotune::any_pointer {place};" for place in places.values()]
    calls: dict[str, int] = {}
    for number, workload in enumerate(workloads):
        inputs = draw_inputs(workload.problem, workload.arrays)
        for name, content in inputs.items():
            np.ascontiguousarray(content).tofile(folder / f"{number}.{name}")
        numbers: list[int | float] = []
        for array in workload.arrays:
            numbers += [array.name in inputs, array.size_bytes]
        for local in workload.local:
            size_bytes = array_bytes(local.dtype, local.shape)
            place = f"local_{local.name}_{size_bytes}"
            shared = f"__shared__ __align__(16) char memory[{size_bytes}];"
            lines.append(f"static autotune::any_pointer {place}() {{ {shared} return {{memory}}; }}")
            places[local.name] = f"{place}()"
        for launch in workload.launches:
            call, passed = _call(launch, workload, places)
            kind = calls.setdefault(call, len(calls))
            numbers += [kind, *launch.grid, *launch.block, launch.shared_bytes, len(passed), *passed]
        (folder / str(number)).write_bytes(b"".join(map(_packed, numbers)))
    main = [f'{places[array.name]} = autotune::array("{array.name}");' for array in arrays]
    for array in arrays:
        if array.symbol:
            main.append(f"autotune::set_variable(&{array.symbol}, {places[array.name]});")
    saved = [array.name for array in arrays if array.role != "scratch"]
    main += [
        "autotune::run(calls, autotune::dynamic_shared());",
        *(f'autotune::save("{name}", {places[name]});' for name in saved),
    ]
    lines += [
        f"static void (*const calls[])() = {{{', '.join(calls)}}};",
        f"int main(int, char **words) {{ autotune::start(words[1], {MAX_CPU_S});",
    ]
    return "\n".join((_with_own_words(source), *dict.fromkeys(lines), *main, "return 0; }\n"))


def _call(launch: Launch, workload: Workload, places: Mapping[str, str]) -> tuple[str, list[int | float]]:
    """A function that calls the kernel of a launch, and the numbers that it passes."""
    views = {view.name: view for view in workload.views}
    values = {scalar.name: scalar.value for scalar in workload.scalars}
    passed: list[int | float] = []

    def number(value: int | float) -> str:
        passed.append(value)
        return f"autotune::numbers[{len(passed) - 1}].{'whole' if isinstance(value, int) else 'real'}"

    def word(part: int | float | str) -> str:
        """A number, or the address of an array or a view."""
        if not isinstance(part, str):
            return repr(part)
        view = views.get(part)
        return f"{places[view.of]}.from({number(view.offset_bytes)})" if view else places[part]

    words = []
    for name in launch.arguments:
        value = values.get(name, name)
        if isinstance(value, tuple):  # the parts of a complex number or a structure
            words.append(f"{{{', '.join(map(word, value))}}}")
        else:
            words.append(word(value) if isinstance(value, str) else number(value))
    call = f"({launch.entry})({', '.join(words)});"  # never a function of threads.h with this name
    return f"[] {{ {call} }}", passed


def _packed(number: int | float) -> bytes:
    """The eight bytes of a number, as threads.h reads them."""
    return (np.float64(number) if isinstance(number, float) else np.uint64(int(number) % 2**64)).tobytes()
