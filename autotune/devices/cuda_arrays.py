"""Kernels that compare, gather and read arrays on the GPU, for the CUDA adapter."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from weakref import WeakKeyDictionary

import numpy as np

from autotune.compilers.binary_cache import BinaryCache, CachedCompiler, default_folder
from autotune.compilers.nvrtc import CudaCompiler
from autotune.compilers.triton_binary import UNUSED, scratch_name
from autotune.core.c_types import C_TYPES, element_bytes
from autotune.core.records import DeviceInfo, Launch
from autotune.core.trials import Binary
from autotune.cuda.driver import check
from autotune.cuda.launch import launch_call
from autotune.cuda.memory import Memory, fill
from autotune.cuda.module import Module
from autotune.devices.array_compare import ArrayComparison, Difference, special_bits
from autotune.devices.base import DIRTY, Arguments, Buffer, Bytes, Indices, host_difference
from autotune.devices.cuda_memory import CudaMemory
from autotune.devices.element_types import plain_dtype

_RESULT_BYTES = 16
_MAX_COMPARISONS = 4096  # kept launches
_COMPILERS = 4  # threads that compile these kernels if the cache lacks them
_DIRTY_BLOCKS = 2  # for each multiprocessor: the first need not be spread over all
_FILL = 0xFF  # of results, as `_difference` reads them


class CudaArrays(CudaMemory):
    """Memory of a GPU, with kernels that compare, gather and read its arrays on the device's stream."""

    def __init__(self, info: DeviceInfo) -> None:
        """Begin to compile the kernels in the background, while the context is made and memory is filled."""
        self.info = info
        self._scratch: WeakKeyDictionary[Module, dict[tuple[str, int], Memory]] = WeakKeyDictionary()
        self._programs: dict[str, Module] = {}  # by their sources
        threads = ThreadPoolExecutor(_COMPILERS)
        sources = [comparison_source(4), DIRTY_SOURCE, gather_source(4)]  # every search needs these
        sources += [source_of(size) for size in (2, 8, 1) for source_of in (comparison_source, gather_source)]
        self._compiling: dict[str, Future[Binary]] = {
            source: threads.submit(_compiled, info.architecture, source) for source in sources
        }
        self._comparisons: dict[tuple[ArrayComparison, int], Callable[[], None]] = {}
        self._gathering: tuple[Buffer, int] = (None, 0)  # memory for indices and elements, and its size
        self._results: tuple[Buffer, int] = (None, 0)  # for results of comparisons, and their maximum number

    def load(self, binary: Binary) -> Module:
        """Load a cubin; its kernels are looked up at their first launch."""
        return Module(binary, self.context, stays=False)

    def launch(
        self, program: Module, step: Launch, arguments: Arguments, stream: ctypes.c_void_p | None = None
    ) -> Callable[[], None]:
        """Prepare a launch, to time no host work; the returned function enqueues it, or raises DeviceError.

        Scratch memory belongs to the program. It starts as zeros, because compute-sanitizer does not see
        kernels write tensor descriptors into it.
        """
        completed = program.cubins.completed(step)
        scratch = 0  # the address
        if size_bytes := program.cubins.scratch_bytes(step):
            known = self._scratch.setdefault(program, {})
            key = step.entry, size_bytes
            if key not in known:
                known[key] = Memory(self.context, size_bytes)
                fill(self.context, known[key].address, b"\0", size_bytes)
            scratch = known[key].address
        given = {**arguments, UNUSED: 0, scratch_name(step): scratch}
        values = [_in_memory(given[name]) for name in completed.arguments]
        enqueue = launch_call(completed, program.function(completed), values, stream or self.stream)
        return lambda: check(step.entry, enqueue())

    def compare(self, comparisons: Sequence[ArrayComparison]) -> list[Difference | None]:
        """Compare all pairs on the GPU, then copy the results to the host; structures on the host."""
        if any(comparison.struct for comparison in comparisons):
            return [host_difference(self.read, comparison) for comparison in comparisons]
        size_bytes = _RESULT_BYTES * len(comparisons)
        self._reserve_results(len(comparisons))
        results, _ = self._results
        self.fill(results, _FILL, size_bytes)
        for position, comparison in enumerate(comparisons):
            self._enqueue_comparison(comparison, position)
        words = self.read(results, size_bytes).view(np.uint64).tolist()
        return [_difference(*pair) for pair in zip(words[::2], words[1::2], strict=True)]

    def gather(self, buffer: Buffer, indices: Indices, item_bytes: int) -> Bytes:
        """Gather the elements on the GPU, then copy them to the host in one piece.

        The indices are copied each time, because a kernel may have overwritten them.
        """
        if not indices.size:
            return np.empty(0, np.uint8)
        size_bytes = indices.size * item_bytes
        memory, room_bytes = self._gathering
        if room_bytes < indices.nbytes + size_bytes:
            room_bytes = indices.nbytes + size_bytes
            memory = self.allocate(room_bytes)
            self._gathering = memory, room_bytes
        gathered = self.region(memory, indices.nbytes, size_bytes)
        self.write(memory, indices.view(np.uint8))
        word_bytes = next(size for size in (8, 4, 2, 1) if item_bytes % size == 0)
        arguments = {
            "array": buffer,
            "places": memory,
            "words": np.uint64(item_bytes // word_bytes),
            "count": np.uint64(indices.size),
            "found": gathered,
        }
        step = Launch("gather", (-(-indices.size // 256), 1, 1), (256, 1, 1), 0, tuple(arguments))
        self.launch(self._program(gather_source(word_bytes)), step, arguments)()
        return self.read(gathered, size_bytes)

    def dirty_block_memory(self) -> None:
        """Enqueue blocks that fill all shared memory of a multiprocessor each, for all multiprocessors."""
        size_bytes = self.info.shared_bytes_per_block
        arguments = {"words": np.uint32(size_bytes // 4), "word": np.uint32(DIRTY)}
        blocks = _DIRTY_BLOCKS * self.info.compute_units
        step = Launch("dirty", (blocks, 1, 1), (256, 1, 1), size_bytes, tuple(arguments))
        self.launch(self._program(DIRTY_SOURCE), step, arguments)()

    def read_on_gpu(self, buffer: Buffer, size_bytes: int) -> None:
        """Enqueue a kernel that reads this many bytes of a buffer: a comparison with itself."""
        self._reserve_results(1)
        self._enqueue_comparison(_with_itself(buffer, size_bytes), 0)

    def reading(self, buffer: Buffer, size_bytes: int) -> tuple[Module, Launch, Arguments]:
        """The launch of a kernel that reads this many bytes of a buffer."""
        self._reserve_results(1)
        return self._launch_of(_with_itself(buffer, size_bytes), 0)

    def forget(self) -> None:
        """Drop the launches of comparisons, which refer to buffers."""
        self._comparisons.clear()

    def _reserve_results(self, count: int) -> None:
        if count > self._results[1]:
            self._results = self.allocate(_RESULT_BYTES * count), count
            self._comparisons.clear()

    def _enqueue_comparison(self, comparison: ArrayComparison, position: int) -> None:
        """Enqueue a comparison; its launch is kept, because every configuration needs the same."""
        key = (comparison, position)
        if key not in self._comparisons:
            if len(self._comparisons) >= _MAX_COMPARISONS:
                self._comparisons.clear()
            self._comparisons[key] = self.launch(*self._launch_of(comparison, position))
        self._comparisons[key]()

    def _launch_of(self, comparison: ArrayComparison, position: int) -> tuple[Module, Launch, Arguments]:
        result = self.region(self._results[0], _RESULT_BYTES * position, _RESULT_BYTES)
        gap = 0 if comparison.inside else comparison.count - 2 * comparison.ends
        magnitude = comparison.magnitude
        arguments = {
            "actual": comparison.actual,
            "expected": comparison.expected,
            "count": np.uint64(comparison.count),
            "ends": np.uint64(comparison.ends),
            "gap": np.uint64(gap),
            "special": np.uint64(special_bits(comparison.dtype)),
            "kind": np.int32(_KINDS.index(comparison.dtype)),
            "rtol": np.float64(comparison.tolerance.rtol),
            "atol": np.float64(comparison.tolerance.atol),
            "magnitude": result if magnitude is None else magnitude,  # not read without factor
            "factor": np.float64(comparison.tolerance.factor),
            "result": result,
        }
        blocks = max(1, min(8 * self.info.compute_units, -(-(comparison.count - gap) // 512)))
        step = Launch("compare", (blocks, 1, 1), (512, 1, 1), 0, tuple(arguments))
        program = self._program(comparison_source(element_bytes(comparison.dtype)))
        return program, step, arguments

    def _program(self, source: str) -> Module:
        """The kernel of a source, compiled now if it is not yet compiled."""
        if source not in self._programs:
            compiling = self._compiling[source]
            is_late = compiling.cancel()
            binary = _compiled(self.info.architecture, source) if is_late else compiling.result()
            self._programs[source] = self.load(binary)
        return self._programs[source]


def _in_memory(value: Buffer | np.generic) -> ctypes.c_uint64 | ctypes.Array[ctypes.c_char]:
    """An argument in the form of a kernel's parameters; a buffer is an address."""
    if not isinstance(value, np.generic):
        return ctypes.c_uint64(int(value))
    return ctypes.create_string_buffer(value.tobytes(), value.nbytes)


def _with_itself(buffer: Buffer, size_bytes: int) -> ArrayComparison:
    return ArrayComparison(buffer, buffer, "uint32", size_bytes // 4)


def _compiled(architecture: str, source: str) -> Binary:
    """A kernel that every device process needs, from the binary cache: the first process compiles it."""
    return CachedCompiler(CudaCompiler(architecture), BinaryCache(default_folder())).compile(source, ())


def _difference(first: int, differing: int) -> Difference | None:
    """Read the kernel's result: the smallest index, and the count minus one; both start with all bits set."""
    count = (differing + 1) % 2**64
    return (first, count) if count else None


@cache
def comparison_source(item_bytes: int) -> str:
    """The rule of `array_compare` as a CUDA kernel `compare` for elements of this size.

    Its parameter `kind` is the type's index in _KINDS, `special` is `special_bits` of the type, `gap` is the
    number of elements to skip after the first `ends`, and `result` is what `_difference` reads. Nearly all
    elements are equal bit by bit, and take the short path. Each thread loads four elements at a time, to use
    the memory's full bandwidth.
    """
    names = [name for name in _KINDS if element_bytes(name) == item_bytes and name not in _NARROW]
    cases = [_CASE.format(kind=_KINDS.index(name), type=C_TYPES[name]) for name in names]
    bits = C_TYPES[f"uint{8 * item_bytes}"]
    kernel = _CUDA.replace("CASES", "".join(cases))
    kernel = kernel.replace("BFLOAT16", str(_KINDS.index("bfloat16")))
    return f"typedef {bits} Bits;\n{kernel}"


@cache
def gather_source(word_bytes: int) -> str:
    """A CUDA kernel `gather` that copies the elements at `places` in an array, which have some words each.

    Its source is separate from the comparison's, for which every search waits; few searches gather.
    """
    return _GATHER.replace("WORD", C_TYPES[f"uint{8 * word_bytes}"])


_KINDS = tuple(name for name in C_TYPES if plain_dtype(name) == name)
_NARROW = ("float16", "bfloat16")  # CUDA C++ has them in headers of its toolkit only
_CASE = """
    case {kind}: {{
        const {type} x = ((const {type} *)actual)[i], y = ((const {type} *)expected)[i];
        same = x == y; found = (double)x; wanted = (double)y;
        break;
    }}"""
_CUDA = """
typedef unsigned long long Count;

__device__ double narrow_at(const void *array, Count i, int kind)
{
    const unsigned short bits = ((const unsigned short *)array)[i];
    float wide;
    if (kind == BFLOAT16) wide = __uint_as_float((unsigned)bits << 16);
    else asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
    return wide;
}

__device__ __noinline__ void judge(const void *actual, const void *expected, Count i, int kind,
                                   double rtol, double atol, const float *magnitude, double factor,
                                   Count inside, Count *result)
{
    double found, wanted;
    bool same;
    switch (kind) {CASES
    default:
        found = narrow_at(actual, i, kind); wanted = narrow_at(expected, i, kind); same = found == wanted;
    }
    const double distance = fabs(found - wanted);
    const double allowed = atol + rtol * fabs(wanted) + (factor > 0 ? factor * magnitude[inside] : 0);
    if (same || (allowed > 0 && distance <= allowed && isfinite(distance))) return;
    atomicMin(result, i);
    atomicAdd(result + 1, 1ull);
}

extern "C" __global__ void compare(const Bits *actual, const Bits *expected, Count count, Count ends,
                                   Count gap, Count special, int kind, double rtol, double atol,
                                   const float *magnitude, double factor, Count *result)
{
    const Count stride = (Count)gridDim.x * blockDim.x, visited = count - gap;
    const Bits mask = (Bits)special;
    for (Count first = (Count)blockIdx.x * blockDim.x + threadIdx.x; first < visited; first += 4 * stride) {
        Bits found[4], wanted[4];
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            const Count i = first + k * stride < visited ? first + k * stride : first;
            found[k] = actual[i + (i < ends ? 0 : gap)];
            wanted[k] = expected[i + (i < ends ? 0 : gap)];
        }
        unsigned unequal = 0, doubtful = 0;  // bits: an index into `found` below would put it in memory
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            unequal |= (found[k] != wanted[k]) << k;
            doubtful |= (found[k] != wanted[k] || (mask && (found[k] & mask) == mask)) << k;
        }
        for (int k = 0; doubtful >> k; ++k) {
            const Count i = first + k * stride;
            if (!(doubtful >> k & 1) || i >= visited) continue;
            const bool guard = i < ends || i >= visited - ends;
            if (guard && !(unequal >> k & 1)) continue;  // NaN, as it should be
            const Count at = i + (i < ends ? 0 : gap);
            judge(actual, expected, at, kind, guard ? 0 : rtol, guard ? 0 : atol, magnitude,
                  guard ? 0 : factor, at - ends, result);
        }
    }
}
"""


_GATHER = """
typedef unsigned long long Count;

extern "C" __global__ void gather(const WORD *array, const Count *places, Count words, Count count,
                                  WORD *found)
{
    const Count i = (Count)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        for (Count word = 0; word < words; ++word)
            found[i * words + word] = array[places[i] * words + word];
}
"""


# A CUDA kernel `dirty` that fills its dynamic shared memory, and local memory, with a word.
DIRTY_SOURCE = """
extern "C" __global__ void dirty(unsigned words, unsigned int word)
{
    extern __shared__ unsigned int cells[];
    volatile unsigned int own[64];
    for (unsigned i = 0; i < 64; ++i)
        own[i] = word;
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x)
        ((volatile unsigned int *)cells)[i] = word;
}
"""
