"""Compile CUDA C++ to a cubin with NVRTC, which needs neither GPU nor driver."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from cuda.bindings import nvrtc
from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

from autotune.compilers import cuda_headers
from autotune.compilers.host_code import needed_part
from autotune.compilers.resource_usage import read_resources
from autotune.core.trials import Binary
from autotune.errors import CompileError, MissingExtra

_NESTED = re.compile(r"device-side kernel launch could not be processed|'__cudaCDP2\w+'")
_BAD_NAME = re.compile(r"^__nv_name_map\(\d+\): error: (.*)$", re.MULTILINE)
_ERROR = re.compile(r"^.*\b(?:error|fatal)\b.*$", re.MULTILINE)
_KERNEL = re.compile(
    r"__global__\s+(?:\w+\s+)*?(?:__launch_bounds__\s*\([^;{]*?\)\s*)?(?:\w+\s+)*?(?!__launch)(\w+)\s*\("
)
_CUB = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]cub/', re.MULTILINE)  # names the host's cudaError_t
_INCLUDES = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)
_INCLUDED = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)
_ABSENT = re.compile(r"the header (\S+) is not found: name")  # as `missing_header` says it
_OK = nvrtc.nvrtcResult.NVRTC_SUCCESS


class _Compiled(NamedTuple):
    """A program's code, its log, and its symbols by the C++ names that were looked up."""

    cubin: bytes
    ptx: str
    log: str
    symbols: dict[str, str]


class CudaCompiler:
    """Compiles for one architecture, such as "sm_90"; options are NVRTC's own, such as --maxrregcount=32.

    A source is first compiled with `--minimal`, which omits textures, surfaces and launches from kernels: it
    is faster and gives the same binary. If that fails, only what its kernels need is compiled, with all
    headers, and so are sources with CUB at once: an error is told of that part.
    """

    def __init__(self, architecture: str) -> None:
        self._options = (f"--gpu-architecture={architecture}", "--std=c++17", "--no-cache")
        self._is_plain = True  # no source has needed more so far
        library = _library()
        # the files that identity and name depend on; none if NVRTC's is not known
        self.files = (library, *cuda_headers.version_files()) if library else ()
        self.identity = " ".join((_version(library), *self._options, cuda_headers.identity()))

    @property
    def name(self) -> str:
        """Name and version in stored results, such as NVRTC 13.0.88."""
        return _name()

    def compile(self, source: str, options: Sequence[str], names: Sequence[str] = ()) -> Binary:
        """Compile one source and look up C++ names in it; raises CompileError with NVRTC's log."""
        began = time.perf_counter()
        made = self._compiled(source, options, names)
        return cubin_binary(made.cubin, made.log, (time.perf_counter() - began) * 1e3, made.symbols)

    def ptx(
        self, source: str, options: Sequence[str], names: Sequence[str] = ()
    ) -> tuple[str, dict[str, str]]:
        """The PTX of one source, and the symbols of C++ names; raises CompileError with NVRTC's log."""
        made = self._compiled(source, options, names)
        return made.ptx, made.symbols

    def _compiled(self, source: str, options: Sequence[str], names: Sequence[str]) -> _Compiled:
        """The least that is enough for the source, as the class says."""
        flags = (*self._options, *options)
        if self._is_plain and not _CUB.search(source):
            with suppress(CompileError):
                return _run(source, (*flags, "--minimal"), names)
        compiled = _of_needed_part(source, flags, names)
        self._is_plain = False  # the next source of this kernel will need as much
        return compiled


def _of_needed_part(source: str, flags: Sequence[str], names: Sequence[str]) -> _Compiled:
    """Compile only what kernels need; raises the first CompileError that is not of the toolkit's own headers.

    A header that is missing, or that stops the compiler, is replaced by an empty one, and the rest is tried
    again.
    """
    text = needed_part(source, names)
    flags = (*flags, "--device-as-default-execution-space")
    first: CompileError | None = None
    absent: dict[str, str] = {}
    while True:
        try:
            return _run(text, flags, names, has_prelude=True, absent=absent)
        except CompileError as error:
            missing = _ABSENT.search(str(error))
            headers = [missing[1]] if missing else _headers_around(text, str(error))
            if not headers or not all(map(cuda_headers.is_cuda_header, headers)):
                first = first or error
            if absent.keys() >= {*headers}:
                raise (first or error) from None
            absent |= dict.fromkeys(headers, "")


def _headers_around(source: str, log: str) -> list[str]:
    """The headers that a source includes and that may have brought the file of a log's first error."""
    place = re.match(r"(.+?)\(\d+\): ", log)
    parts = Path(place[1]).parts if place else ()
    included = map(Path, _INCLUDED.findall(source))
    return [
        str(header)
        for header in included
        if parts and (parts[-1] == header.name or (len(header.parts) > 1 and header.parts[0] in parts[:-1]))
    ]


def _run(
    source: str,
    flags: Sequence[str],
    names: Sequence[str],
    *,
    has_prelude: bool = False,
    absent: Mapping[str, str] = MappingProxyType({}),
) -> _Compiled:
    """Run NVRTC once, with the prelude of `cuda_headers` or without, and with the texts of `absent` headers.

    Raises CompileError.
    """
    headers, header_flags = _headers(source, has_prelude=has_prelude)
    headers = {**headers, **absent}
    texts, files = ([item.encode() for item in items] for items in (headers.values(), headers.keys()))
    result, program = nvrtc.nvrtcCreateProgram(
        source.encode(), b"kernel.cu", len(headers), texts or None, files or None
    )
    if result != _OK:
        raise CompileError(f"NVRTC rejects the source: {result.name}")
    try:
        asked = {name: name_expression(name).encode() for name in names}
        for expression in asked.values():
            nvrtc.nvrtcAddNameExpression(program, expression)
        encoded = [flag.encode() for flag in (*flags, *header_flags)]
        (result,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
        log = _output(program, "ProgramLog").decode(errors="replace").strip("\0\n")
        if result != _OK:
            raise CompileError(_explained(log, names, source) or result.name)
        lowered = {name: nvrtc.nvrtcGetLoweredName(program, text)[1] for name, text in asked.items()}
        symbols = {name: symbol.decode() for name, symbol in lowered.items()}
        ptx = _output(program, "PTX").decode(errors="replace").rstrip("\0")
        return _Compiled(_output(program, "CUBIN"), ptx, log, symbols)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _output(program: Any, kind: str) -> bytes:
    _, size_bytes = getattr(nvrtc, f"nvrtcGet{kind}Size")(program)
    content = bytearray(size_bytes)
    getattr(nvrtc, f"nvrtcGet{kind}")(program, content)
    return bytes(content)


def _headers(source: str, *, has_prelude: bool) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """The texts that replace headers, by name, and the flags that find the others."""
    texts = cuda_headers.stand_ins
    prelude = (f"--pre-include={cuda_headers.PRELUDE}",) if has_prelude else ()
    if "#" in source and _INCLUDES.search(source):
        return texts(), (*prelude, *(f"--include-path={folder}" for folder in cuda_headers.include_dirs()))
    return ({cuda_headers.PRELUDE: texts()[cuda_headers.PRELUDE]} if has_prelude else {}), prelude


def name_expression(name: str) -> str:
    """A name's address as an expression of C++: argument types after it choose among overloaded functions."""
    if not name.endswith(")"):
        return f"&{name}"
    start = name.rindex("(")
    return f"static_cast<void (*){name[start:]}>({name[:start].rstrip()})"


def _explained(log: str, names: Sequence[str], source: str) -> str:
    """An error with its remedy; else the log without the warnings before its first error."""
    if _NESTED.search(log):
        return "kernels that launch kernels need nvcc: write `compiler: nvcc` in the space"
    if reason := _why_unknown(log, names, source) or cuda_headers.missing_header(log):
        return reason
    error = _ERROR.search(log)
    return log[error.start() :] if error else log


def _why_unknown(log: str, names: Sequence[str], source: str) -> str:
    """Say why NVRTC could not look up a name; empty for a log of another error."""
    reason = _BAD_NAME.search(log)
    if reason is None or _ERROR.search(log, 0, reason.start()):  # which the name may be unknown for
        return ""
    asked = next((name for name in names if f'" {name_expression(name)}"' in log), ", ".join(names))
    if "overloaded" in reason[1]:
        return f"{asked} is overloaded: write its argument types behind it, such as {asked}(float *, int)"
    known = ", ".join(dict.fromkeys(_KERNEL.findall(source)))
    return f"no such kernel or variable: {asked} ({reason[1]}); the source has {known or 'no kernel'}"


def cubin_binary(data: bytes, log: str, compile_ms: float, symbols: Mapping[str, str]) -> Binary:
    """A cubin with the resources of its most demanding kernel, None if the file cannot be read."""
    own = {name: symbol for name, symbol in symbols.items() if name != symbol}
    binary = Binary(data, hashlib.sha256(data).hexdigest(), log, compile_ms, symbols=own)
    try:
        kernels = read_resources(data).values()
    except ValueError:
        return binary
    return replace(
        binary,
        registers=max((kernel.registers for kernel in kernels), default=None),
        spill_bytes=max((kernel.spill_bytes for kernel in kernels), default=None),
        shared_bytes=max((kernel.shared_bytes for kernel in kernels), default=None),
    )


def _library() -> Path | None:
    """Load NVRTC; raises MissingExtra if the library is not installed."""
    try:
        path = load_nvidia_dynamic_lib("nvrtc").abs_path
    except DynamicLibNotFoundError:  # the bindings and the library are separate packages
        raise MissingExtra("NVRTC", "cuda") from None
    return Path(path) if path else None


def _version(path: Path | None) -> str:
    """NVRTC's version with its file's size and date, because patches of one version generate other code."""
    _, major, minor = nvrtc.nvrtcVersion()
    status = path.stat() if path else None
    file = f"{status.st_size}/{status.st_mtime_ns}" if status else "of the system"
    return f"NVRTC {major}.{minor} {file}"


@cache
def _name() -> str:
    """NVRTC with its full version, which only its PTX contains."""
    return f"NVRTC {version_in(_run('', (), ()).ptx)}"


def version_in(text: str) -> str:
    """The version in the output of NVIDIA's compilers, such as `release 13.0, V13.0.88`."""
    version = re.search(r"\bV(\d+(?:\.\d+)+)", text)
    return version[1] if version else "of unknown version"
