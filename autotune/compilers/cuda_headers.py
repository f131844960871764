"""The headers that CUDA sources include: find the toolkit's, and replace the host's.

NVRTC has no headers of its own. Those of the CUDA toolkit and of CCCL (CUB, Thrust, libcu++) are found in
NVIDIA's wheels, in a toolkit or by CUDA_HOME. A header of the host's libraries is replaced by what device
code can use of it, which is often nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_MISSING = re.compile(
    r'(?:could not|cannot) open source file "([^"]+)"|fatal error: (\S+): No such file'  # of nvcc's host
)
# The toolkit's parts: the name for `cuda.pathfinder`, a header, the wheel, and how names of headers begin.
_PARTS = (
    ("cccl", "cuda/std/version", "nvidia-cuda-cccl", r"cub/|thrust/|cuda/|nv/"),
    ("curand", "curand.h", "nvidia-curand", r"curand"),
    ("nvcc", "crt/mma.h", "nvidia-cuda-crt", r"crt/|nvvm"),
    (
        "cudart",
        "cuda_runtime.h",
        "nvidia-cuda-runtime",
        r"cuda|cuComplex|mma\.h|cooperative_groups|vector_|sm_\d|texture_|surface_|math_(?:constants|functions)",
    ),
)

_HOST_PARTS = re.compile(r"^#include <cub/(?:device/|util_allocator).*$", re.MULTILINE)
_UNCHECKED = "#define CCCL_DISABLE_NVRTC_COMPATIBILITY_CHECK\n"
_EMPTY = "namespace std { using ::size_t; using ::ptrdiff_t; }\n"
_FUNCTIONS = (
    "sqrt exp log log2 log10 pow sin cos tan asin acos atan atan2 sinh cosh tanh fabs floor ceil fmod round "
    "fma fmin fmax hypot cbrt isnan isinf"
)
_TYPES = "int8 int16 int32 int64 uint8 uint16 uint32 uint64"
_STDINT = (
    """#ifndef AUTOTUNE_STDINT
#define AUTOTUNE_STDINT
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef long long intptr_t;
typedef unsigned long long uintptr_t;
"""
    + f"namespace std {{ {' '.join(f'using ::{name}_t;' for name in _TYPES.split())} "
    + "using ::size_t; using ::ptrdiff_t; }\n#endif\n"
)


def _macros(values: Mapping[str, str]) -> str:
    """Definitions of macros that the toolkit's headers may define as well."""
    return "".join(f"#ifndef {name}\n#define {name} {value}\n#endif\n" for name, value in values.items())


_MATH = (
    "#ifndef AUTOTUNE_MATH\n#define AUTOTUNE_MATH\n"
    + _macros(
        {
            "INFINITY": "__int_as_float(0x7f800000)",
            "NAN": "__int_as_float(0x7fffffff)",
            "HUGE_VALF": "__int_as_float(0x7f800000)",
            "HUGE_VAL": "__longlong_as_double(0x7ff0000000000000ll)",
            "M_E": "2.7182818284590452354",
            "M_PI": "3.14159265358979323846",
            "M_PI_2": "1.57079632679489661923",
            "M_PI_4": "0.78539816339744830962",
            "M_1_PI": "0.31830988618379067154",
            "M_2_PI": "0.63661977236758134308",
            "M_SQRT2": "1.41421356237309504880",
            "M_SQRT1_2": "0.70710678118654752440",
        }
    )
    + f"namespace std {{ {' '.join(f'using ::{name};' for name in _FUNCTIONS.split())} "
    + "using ::abs; using ::min; using ::max; }\n#endif\n"
)
# As libcu++ writes them: a macro may be defined twice, by the same text.
_LIMITS = _macros(
    {
        "CHAR_BIT": "8",
        "SHRT_MIN": "(-SHRT_MAX - 1)",
        "SHRT_MAX": "0x7fff",
        "USHRT_MAX": "0xffff",
        "INT_MIN": "(-INT_MAX - 1)",
        "INT_MAX": "0x7fffffff",
        "UINT_MAX": "0xffffffff",
        "LONG_MIN": "(-LONG_MAX - 1)",
        "LONG_MAX": "LLONG_MAX",
        "ULONG_MAX": "ULLONG_MAX",
        "LLONG_MIN": "(-LLONG_MAX - 1)",
        "LLONG_MAX": "0x7fffffffffffffffLL",
        "ULLONG_MAX": "0xffffffffffffffffUL",
    }
)
_FLOAT = _macros(
    {
        "FLT_MAX": "3.402823466e+38f",
        "FLT_MIN": "1.175494351e-38f",
        "FLT_EPSILON": "1.192092896e-07f",
        "DBL_MAX": "1.7976931348623158e+308",
        "DBL_MIN": "2.2250738585072014e-308",
        "DBL_EPSILON": "2.2204460492503131e-16",
    }
)
_HIP = "".join(
    f"#define hip{word[0].upper()}{word[1:]}_{axis} {word}.{axis}\n"
    for word in ("threadIdx", "blockIdx", "blockDim", "gridDim")
    for axis in "xyz"
)
# What kernels call of the runtime, where it is installed; nvcc includes all of it.
_RUNTIME = """#if __has_include(<cuda_device_runtime_api.h>)
#include <cuda_device_runtime_api.h>
#endif
"""
# Shuffles of a whole warp as they were called before CUDA 9; only those with a mask are left.
_SHUFFLES = "".join(
    f"template <typename T> __device__ inline T __shfl{kind}(T value, int lane, int width = 32)\n"
    f"{{ return __shfl{kind}_sync(0xffffffffu, value, lane, width); }}\n"
    for kind in ("", "_up", "_down", "_xor")
)
_STORAGE = "#define register\n"  # which C++17 forbids, and nvcc passes over
_SHORT_TYPES = "".join(f"typedef unsigned {kind} u{kind};\n" for kind in ("char", "short", "int", "long"))
# Included before every source that needs it, as nvcc includes a header of its own.
PRELUDE = "autotune_prelude.h"
# Headers of the host alone: device code uses nothing of them.
_OF_HOST = """
    iostream fstream sstream iomanip ostream istream cstdio stdio.h cstdlib stdlib.h cstring string.h string
    vector map set unordered_map list memory functional chrono random thread mutex cassert assert.h ctime
    time.h sys/time.h unistd.h stdexcept exception numeric stddef.h cstddef stdbool.h omp.h mpi.h
    sys/types.h iterator initializer_list errno.h thrust/device_vector.h thrust/host_vector.h
    thrust/device_ptr.h thrust/sort.h thrust/copy.h thrust/reduce.h thrust/scan.h thrust/execution_policy.h
    cuda.h cublas_v2.h cufft.h cusparse.h nvToolsExt.h cuda_profiler_api.h helper_cuda.h
    helper_functions.h helper_string.h helper_timer.h
    bitset cctype cerrno cfenv clocale csignal cstdarg ctype.h deque forward_list new queue stack
    fcntl.h pthread.h signal.h strings.h getopt.h dirent.h sys/timeb.h sys/stat.h sys/resource.h sys/mman.h
    sys/wait.h sys/socket.h sys/param.h sys/ioctl.h malloc.h immintrin.h any barrier charconv codecvt
    condition_variable coroutine cwchar cwctype execution filesystem future ios iosfwd locale locale.h
    memory_resource regex setjmp.h shared_mutex stop_token streambuf string_view system_error typeindex
    typeinfo unordered_set valarray variant wchar.h wctype.h
    cxxabi.h dlfcn.h cublas.h cublasLt.h cusolverDn.h cusolverSp.h cufftXt.h cufftw.h nvml.h
"""
_STAND_INS = {
    **dict.fromkeys(_OF_HOST.split(), _EMPTY),
    **dict.fromkeys(("stdint.h", "cstdint", "inttypes.h", "cinttypes"), _STDINT),
    **dict.fromkeys(("math.h", "cmath", "algorithm"), _MATH),
    **dict.fromkeys(("limits.h", "climits"), _LIMITS),
    **dict.fromkeys(("float.h", "cfloat"), _FLOAT),
    "hip/hip_runtime.h": _HIP,
    PRELUDE: _MATH + _STDINT + _LIMITS + _FLOAT + _SHORT_TYPES + _RUNTIME + _SHUFFLES + _STORAGE,
}
# Headers of the toolkit that device code can do without: an empty one replaces each that is missing.
_DISPENSABLE = """
    curand.h cuda_runtime.h cuda_runtime_api.h device_launch_parameters.h device_functions.h vector_types.h
    vector_functions.h math_functions.h device_atomic_functions.h driver_types.h host_defines.h
    builtin_types.h
"""
DISPENSABLE = tuple(_DISPENSABLE.split())
# Headers for device code that come with the toolkit or CCCL: a folder of the source has none of these names.
_OF_TOOLKIT = re.compile(
    r"(?:cub|thrust|cuda|nv|crt|cooperative_groups)/.+|(?:cuda_(?:fp\d+|bf16|pipeline|pipeline_primitives|awbarrier)"
    r"|cooperative_groups|mma|cuComplex|math_constants|curand_kernel)\.hp*"
)
# Headers of the standard library that libcu++ has for device code.
FOR_DEVICES = ("limits", "type_traits", "utility", "tuple", "array", "complex", "ratio", "optional", "atomic")


@cache
def include_dirs() -> tuple[Path, ...]:
    """The folders of the toolkit's and CCCL's headers that are installed."""
    try:
        from cuda.pathfinder import find_nvidia_header_directory
    except ImportError:
        return ()
    folders = [find_nvidia_header_directory(name) for name, *_ in _PARTS]
    return tuple(dict.fromkeys(Path(folder) for folder in folders if folder))


def find_header(name: str) -> Path | None:
    """A header of the toolkit or of CCCL."""
    return next((folder / name for folder in include_dirs() if (folder / name).is_file()), None)


def is_cuda_header(name: str) -> bool:
    """True if a CUDA compiler has a header itself: no folder of the source needs to have it.

    Where a part of the toolkit is installed, it has what it has: a source may have `cuda/own.h`.
    """
    if name in {*_STAND_INS, *DISPENSABLE, *FOR_DEVICES} or find_header(name) is not None:
        return True
    return _OF_TOOLKIT.fullmatch(name) is not None and bool(_absent_wheel(name))


def _absent_wheel(name: str) -> str:
    """The wheel that has headers with such a name, if they are not installed; else empty."""
    fitting = ((other, wheel) for _, other, wheel, begins in _PARTS if re.match(begins, name))
    other, wheel = next(fitting, ("", ""))
    return "" if find_header(other) else wheel


@cache
def stand_ins() -> dict[str, str]:
    """The headers that replace the host's for NVRTC: their texts, by name."""
    headers = dict(_STAND_INS)
    headers |= {name: _EMPTY for name in DISPENSABLE if find_header(name) is None}
    for name in FOR_DEVICES:
        if find_header(f"cuda/std/{name}") is not None:
            headers[name] = f"#include <cuda/std/{name}>\nnamespace std {{ using namespace ::cuda::std; }}\n"
    umbrella = find_header("cub/cub.cuh")
    if umbrella is not None:  # its parts for devices launch kernels, which is the host's business
        headers["cub/cub.cuh"] = _UNCHECKED + _HOST_PARTS.sub("", umbrella.read_text())
    return headers


def version_files() -> tuple[Path, ...]:
    """The headers whose state stands for their packages' versions."""
    return tuple(path for _, header, *_ in _PARTS if (path := find_header(header)) is not None)


@cache
def identity() -> str:
    """Identify the headers that a binary may depend on: the replacements' texts, and the others' versions."""
    lines = [f"{name}\0{text}" for name, text in sorted(stand_ins().items())]
    for path in version_files():
        status = path.stat()
        lines.append(f"{path.name} {status.st_size} {status.st_mtime_ns}")
    return "headers " + hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def missing_header(log: str) -> str:
    """Say which header a compiler did not find and what to install; empty for a log of another error."""
    match = _MISSING.search(log)
    if match is None:
        return ""
    name = match[1] or match[2]
    if not (wheel := _absent_wheel(name)):
        return f"the header {name} is not found: name its folder in include_dirs of the space file"
    return (
        f"the header {name} is not found: pip install {wheel}, or install the CUDA toolkit and set CUDA_HOME"
    )
