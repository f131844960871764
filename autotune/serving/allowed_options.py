"""The compiler options that a cache may contain.

An option can name a file to write, a program to start or a library to load, and every compiler version adds
more. So the options that only change the code or its diagnostics are listed, and all others are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

_FLAG = ""
_NUMBER = r"=\d{1,9}"
_TRUTH = "=(?:true|false)"
_TARGET = r"=(?:sm|compute)_\d{2,3}[af]?"
_LEVEL = r"-O[0-3]"
_DEFINITION = r"-D[A-Za-z_]\w*(?:=\w*)?"  # replaces a word by a word, as a parameter's macro does
_CUDA = {
    "maxrregcount": _NUMBER,
    **dict.fromkeys(("ftz", "prec-div", "prec-sqrt", "fmad"), _TRUTH),
    **dict.fromkeys(("use_fast_math", "restrict", "extra-device-vectorization"), _FLAG),
    **dict.fromkeys(("device-debug", "generate-line-info", "lineinfo", "disable-warnings"), _FLAG),
    **dict.fromkeys(("Ofast-compile", "Ofc"), "=(?:0|min|mid|max)"),
    **dict.fromkeys(("gpu-architecture", "arch"), _TARGET),
    "std": r"=c\+\+\d\d",
    **dict.fromkeys(("Xptxas", "ptxas-options"), "=(?:-O[0-4]|-v|--verbose|-warn-spills)"),
    "split-compile": _NUMBER,
    **dict.fromkeys(("w", "G"), _FLAG),
}
_NVRTC = _CUDA | dict.fromkeys(
    ("device-int128", "device-as-default-execution-space", "default-device"), _FLAG
)
_NVCC = _CUDA | dict.fromkeys(("expt-relaxed-constexpr", "expt-extended-lambda", "extended-lambda"), _FLAG)
_OPENCL = {
    **dict.fromkeys(
        (
            *("single-precision-constant", "denorms-are-zero", "fp32-correctly-rounded-divide-sqrt"),
            *("opt-disable", "strict-aliasing", "mad-enable", "no-signed-zeros", "unsafe-math-optimizations"),
            *("finite-math-only", "fast-relaxed-math", "uniform-work-group-size", "no-subgroup-ifp"),
            *("kernel-arg-info", "nv-verbose"),
        ),
        _FLAG,
    ),
    "std": r"=(?:CL|CLC\+\+)\d(?:\.\d)?",
    **dict.fromkeys(("nv-maxrregcount", "nv-opt-level"), _NUMBER),
}


def refused_options(options: Iterable[str], dialect: str, compiler: str) -> Iterator[str]:
    """The options that a cache may not give to a compiler. An empty name is the dialect's usual compiler."""
    allowed = _pattern(dialect, compiler)
    return (option for option in options if re.fullmatch(allowed, option, re.ASCII) is None)


def _pattern(dialect: str, compiler: str) -> str:
    if dialect == "opencl":
        return _any(_alternatives("-cl-", _OPENCL), "-w", "-Werror", _DEFINITION)
    if dialect == "cuda" and compiler != "triton":
        known = _NVCC if compiler == "nvcc" else _NVRTC
        return _any(_alternatives("--?", known), _LEVEL, _DEFINITION)
    return "(?!)"  # Triton's options are constants of launches; Python has none


def _alternatives(start: str, known: Mapping[str, str]) -> str:
    return start + _any(*(re.escape(name) + value for name, value in known.items()))


def _any(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"
