"""The words of each dialect, written as the one that the parser knows: CUDA C++."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from autotune.core.packaged import packaged_folder
from autotune.sources.macros import MacroTable
from autotune.sources.preprocessor import compiled_lines

PORTABLE, CUDA, OPENCL = "portable", "cuda", "opencl"
_INTRODUCED = {  # what a kernel begins with; the first dialect with a match is that of a source
    PORTABLE: re.compile(r"\bKERNEL\b"),
    CUDA: re.compile(r"\b__global__\b"),
    OPENCL: re.compile(
        r"\b__kernel\b|\bkernel\b(?=\s+(?:void|__attribute__)\b)|\bvoid\s+kernel\b(?=\s+\w+\s*\()"
    ),
}
INTRODUCER = re.compile("|".join(words.pattern for words in _INTRODUCED.values()))
BUILT_IN = re.compile(  # words of compilers and of their libraries, which no source has to define
    r"__\w*|_[A-Z]\w*|CLK_\w+|CL_\w+|CU(?:DA|BLAS|FFT|SPARSE|RAND|SOLVER|DNN)\w*|(?:FLT|DBL|HALF|FP)_\w+|"
    r"(?:U?CHAR|SCHAR|U?SHRT|U?INT(?:8|16|32|64)?|U?LONG|U?LLONG|SIZE)_(?:MAX|MIN|BIT|WIDTH)|"
    r"M_(?:E|LOG2E|LOG10E|LN2|LN10|PI|PI_2|PI_4|1_PI|2_PI|2_SQRTPI|SQRT2|SQRT1_2)(?:_[FH])?|"
    r"NULL|INFINITY|NAN|HUGE_VALF?|TRUE|FALSE|NDEBUG|MAXFLOAT|cl_(?:khr|amd|intel|nv)_\w+|defined|true|false"
)
# The parser knows attributes only as GCC writes them.
_COMMON = """
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
#define __forceinline__ inline
#define __forceinline inline
#define __inline__ inline
#define __inline inline
#define __noinline__
#define __restrict__
#define __restrict
#define __grid_constant__
#define __maxnreg__(count)
#define __cluster_dims__(...)
#define __extension__
#define _Pragma(text)
""" + "".join(
    f"#define hip{word[0].upper()}{word[1:]}_{axis} {word}.{axis}\n"
    for word in ("threadIdx", "blockIdx", "blockDim")
    for axis in "xyz"
)
_CUDA = f"""{_COMMON}
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDA_ARCH__ 900
#define __cplusplus 201703L
#define __CUDACC_VER_MAJOR__ 13
#define CUDART_VERSION 13000
"""
_OPENCL = f"""{_COMMON}
#define __OPENCL_VERSION__ 120
#define __OPENCL_C_VERSION__ 120
#define CL_VERSION_1_0 100
#define CL_VERSION_1_1 110
#define CL_VERSION_1_2 120
#define __kernel __global__
#define __global
#define __local __shared__
#define __constant const
#define __private
#define __read_only
#define __write_only
#define restrict
#define kerneL __global__
#define globaL
#define locaL __shared__
#define constanT const
#define privatE
#define read_onlY
#define write_onlY
"""
# Of the words of portable.h these are kept as they say more than what they stand for.
_PORTABLE = f"""{_CUDA}
#define KERNEL __global__ void
#define KERNEL_BLOCK(x, y, z) __attribute__((reqd_work_group_size(x, y, z)))
#define KERNEL_RESIDENT_BLOCK(x, y, z, blocks) __attribute__((reqd_work_group_size(x, y, z)))
#define GLOBAL
#define CONSTANT const
#define ATOMIC_ADD(pointer, value) atomicAdd(pointer, value)
#define BARRIER() __syncthreads()
#define UNROLL_LOOP(count)
#define SHARED_POINTER(type) __shared__ type *
"""
PINNED = ("KERNEL", "KERNEL_BLOCK", "KERNEL_RESIDENT_BLOCK", "BARRIER", "UNROLL_LOOP", "ATOMIC_ADD")
# Words of OpenCL that are names of variables, too: qualifiers where another word follows.
_SHORT = re.compile(r"\b(kernel|global|local|constant|private|read_only|write_only)(?=\s+[A-Za-z_])")
_MISPLACED = re.compile(r"\bvoid(\s+)kernel(?=\s+\w+\s*\()")


def dialect_of(code: str) -> str:
    """The dialect of a source's code without directives; empty if nothing in it begins a kernel."""
    return next((dialect for dialect, words in _INTRODUCED.items() if words.search(code)), "")


@cache
def words_of(dialect: str) -> str:
    """Definitions of a dialect's words in front of a source."""
    if dialect == OPENCL:
        return _OPENCL
    return f"{_CUDA}\n{_portable_header()}{_PORTABLE}" if dialect == PORTABLE else _CUDA


def with_own_words(code: str) -> str:
    """Code of OpenCL whose short qualifiers cannot be taken for variables: `locaL float`."""
    return _SHORT.sub(lambda word: word[1][:-1] + word[1][-1].upper(), _MISPLACED.sub(r"kernel\1void", code))


@cache
def portable_macros() -> frozenset[str]:
    """The names that portable.h defines."""
    table = MacroTable({}, is_whole=True)
    for _ in compiled_lines(words_of(PORTABLE), table):
        pass
    return frozenset(table)


def _portable_header() -> str:
    """The directives of portable.h; its functions are left out."""
    text = (Path(packaged_folder("kernels")) / "portable.h").read_text(encoding="utf-8")
    kept: list[str] = []
    is_directive = False
    for line in text.split("\n"):
        is_directive = line.startswith("#") or (is_directive and kept[-1].endswith("\\"))
        kept.append(line if is_directive else "")
    return "\n".join(kept)
