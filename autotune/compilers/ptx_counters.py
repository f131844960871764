"""Count what a kernel executes, without a profiler: its PTX with counters in it, and what they mean.

Every basic block gets two counters: of the warps that run it, and of their active threads. Every access to
memory gets one: of the sectors of global memory that a warp touches, of the passes that a warp's access takes
in the banks of shared memory, or of the different words that a warp's atomics add to.

The driver translates the counted PTX. Machine code may have fewer instructions than PTX (addresses are folded
into accesses): counts of integer operations are an upper bound.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

VARIABLE = "autotune_counts"
COUNTER_BYTES = 8
PIPES = ("float32", "float64", "special", "integer", "tensor")  # units of a multiprocessor
SECTOR_BYTES = 32

_USUAL_PTX = "8.0"  # what is counted here needs nothing newer
_BLACKWELL, _BLACKWELL_PTX = re.compile(r"sm_1\d\d"), "8.7"
_LABEL = re.compile(r"^\s*([$\w]+):")
_INSTRUCTION = re.compile(r"^\s*(?P<predicate>@!?%\w+\s+)?(?P<operation>[a-z][\w.:]*)\s*(?P<operands>[^;]*);")
_ADDRESS = re.compile(r"\[([^\]+]+)(?:\+(-?\d+))?\]")
_WIDTH = re.compile(r"[a-z](\d+)(?:x(\d))?$")  # of a type in bits, such as f16x2
_PRODUCT = re.compile(r"(?P<kind>wgmma\.mma_async|wmma\.mma|mma)\b.*\.m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)\b")
_NARROW_REGISTER = re.compile(r"%r\d")
_BRANCHES = ("bra", "brx", "call")
_BARRIERS = ("bar.", "barrier")
_FOLDED = ("mov", "cvta", "ld.param", "cvt.u64.u32")  # into other instructions, by the assembler
_SECTOR_SHIFT, _WORD_SHIFT = 5, 2
_BANK_BYTES = 128  # of all banks together

# Operations by what they start with and the type they end with: the pipe and how often it is used. The first
# row that matches counts. An integer of 64 bits takes two operations of 32.
_COSTS: tuple[tuple[re.Pattern[str], Mapping[str, float]], ...] = tuple(
    (re.compile(pattern), costs)
    for pattern, costs in (
        (r"(mov|cvta|ld|st|bra|ret|call|exit|abs|neg|pragma|not\.pred|and\.pred|or\.pred|xor\.pred)\b", {}),
        (r"cvt\.[us](32|64)\.[us](32|64)$", {}),
        (r"(sin|cos|ex2|lg2|tanh|rsqrt|rcp|sqrt)\.approx.*f(16x2|16|32)$", {"special": 1}),
        (r"(div\.(approx|full)).*f32$", {"special": 1, "float32": 1}),
        (r"(rcp|sqrt|div)\.r.*f32$", {"special": 1, "float32": 8}),
        (r"(rcp|rsqrt)\.approx.*f64$", {"special": 1}),
        (r"(rcp|sqrt|div)\.r.*f64$", {"special": 1, "float64": 10}),
        (r"setp.*f64$", {"float64": 1}),
        (r"set.*f32$|selp|slct", {"integer": 1}),
        (r"(fma|mad|add|sub|mul|min|max)\..*(f32|f16|f16x2|bf16|bf16x2)$", {"float32": 1}),
        (r"(fma|mad|add|sub|mul|min|max)\..*f64$", {"float64": 1}),
        (r"(popc|clz|brev|bfind)\.", {"special": 1}),
        (r"(div|rem)\.[us]32$", {"integer": 12, "special": 1}),
        (r"(div|rem)\.[us]64$", {"integer": 60, "special": 2}),
        (r"(mul|mad)\.(lo|hi)\.[us]64$", {"integer": 4}),
        (r"(add|sub|min|max|shl|shr|and|or|xor|not|setp|sad|bfe|bfi|mad|mul)\..*[usb]64$", {"integer": 2}),
        (
            r"(add|sub|addc|subc|mul|mul24|mad|mad24|madc|min|max|shl|shr|shf|and|or|xor|not|lop3)\b",
            {"integer": 1},
        ),
        (
            r"(setp|set|bfe|bfi|prmt|sad|dp4a|dp2a|cvt|cnot|shfl|vote|match|activemask|redux)\b",
            {"integer": 1},
        ),
    )
)
# Time of a multiply-add on tensor cores by type, relative to float16 and bfloat16.
_TENSOR_COSTS = {"tf32": 2.0, "e4m3": 0.5, "e5m2": 0.5, "s8": 0.5, "u8": 0.5}


class _Address(NamedTuple):
    """A register or a variable, and the bytes that are added to it."""

    base: str
    offset: int


@dataclass(frozen=True)
class MemoryAccess:
    """One instruction that accesses memory."""

    space: str  # "global", "shared" or "local"
    kind: str  # "load", "store" or "atomic"
    bytes: int  # of a thread
    address: _Address | None  # if the instruction shows one
    counter: int | None = None  # the place of its counter, if it has one


@dataclass(frozen=True)
class BasicBlock:
    """Instructions that run one after the other: uses of each pipe, accesses, barriers."""

    counter: int  # of warps; the next one is of threads
    instructions: int
    uses: Mapping[str, float]
    accesses: tuple[MemoryAccess, ...]
    barriers: int


@dataclass(frozen=True)
class CountedPtx:
    """PTX with counters, and the blocks that they belong to; `counters` is how many there are."""

    text: str
    blocks: tuple[BasicBlock, ...]
    counters: int


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Counts of one run of a plan, by warps: one active thread costs as much as all of them."""

    instructions: float = 0.0
    active_lanes: float  # of 32, mean over instructions
    pipe_lanes: Mapping[str, float]  # uses of each pipe, 32 for each warp; of tensor cores, multiply-adds
    pipe_threads: Mapping[str, float]  # the same by active threads: the work, however warps diverge
    global_load_bytes: float = 0.0  # that threads ask for
    global_store_bytes: float = 0.0
    sectors: float = 0.0  # of 32 bytes, of loads and stores
    requests: float = 0.0  # loads and stores of warps
    shared_passes: float = 0.0  # of warps
    min_shared_passes: float = 0.0  # without bank conflicts
    atomics: float = 0.0  # of threads, on global memory
    atomic_bytes: float = 0.0
    atomic_words: float = 0.0  # different ones within each warp
    local_bytes: float = 0.0
    barriers: float = 0.0
    bytes_per_thread_in_flight: float  # loaded from global memory by the block that loads most

    @property
    def conflict_degree(self) -> float:
        """Passes of shared memory over those without bank conflicts; 1 without shared memory."""
        return self.shared_passes / self.min_shared_passes if self.min_shared_passes else 1.0

    @property
    def sector_use(self) -> float:
        """Share of the moved sectors' bytes that threads ask for; above 1 where threads share them."""
        return (self.global_load_bytes + self.global_store_bytes) / (SECTOR_BYTES * self.sectors or 1.0)


def with_counters(ptx: str, architecture: str) -> CountedPtx:
    """Put counters into the PTX that NVRTC wrote for an architecture, such as "sm_90".

    It has to be newer than "sm_75": passes are counted with redux.
    """
    version = _BLACKWELL_PTX if _BLACKWELL.match(architecture) else _USUAL_PTX
    counting = _Counting()
    lines = list(counting.counted(ptx.rstrip("\0").splitlines()))
    declaration = f".visible .global .align 8 .b8 {VARIABLE}[{COUNTER_BYTES * max(1, counting.counters)}];"
    text = "\n".join(lines).replace(".address_size 64", f".address_size 64\n{declaration}", 1)
    text = re.sub(r"^\.version .*$", f".version {version}", text, count=1, flags=re.MULTILINE)
    return CountedPtx(text + "\n", tuple(counting.blocks), counting.counters)


def counts_of(counted: CountedPtx, values: Sequence[int]) -> Counts:
    """Interpret the counters' values after a run."""
    total: dict[str, float] = defaultdict(float)
    pipes, of_threads = dict.fromkeys(PIPES, 0.0), dict.fromkeys(PIPES, 0.0)
    most_bytes, in_flight = 0.0, 0.0
    for block in counted.blocks:
        warps, threads = values[block.counter], values[block.counter + 1]
        total["instructions"] += warps * block.instructions
        total["lanes"] += threads * block.instructions
        total["barriers"] += warps * block.barriers
        for pipe, uses in block.uses.items():
            pipes[pipe] += 32 * warps * uses
            of_threads[pipe] += threads * uses
        loaded = sum(one.bytes for one in block.accesses if (one.space, one.kind) == ("global", "load"))
        if threads * loaded > most_bytes:
            most_bytes, in_flight = threads * loaded, loaded
        for access in block.accesses:
            counted_here = 0 if access.counter is None else values[access.counter]
            _add(total, access, warps, threads, counted_here)
    lanes = total.pop("lanes", 0.0)
    return Counts(
        **total,
        active_lanes=lanes / total["instructions"] if total["instructions"] else 32.0,
        pipe_lanes=pipes,
        pipe_threads=of_threads,
        bytes_per_thread_in_flight=in_flight,
    )


def _add(total: dict[str, float], access: MemoryAccess, warps: int, threads: int, counted: int) -> None:
    """Add the runs of one access to the totals; without a counter it touches as little as it can."""
    if access.space == "local":
        total["local_bytes"] += threads * access.bytes
    elif access.kind == "atomic":
        if access.space == "global":
            total["atomics"] += threads
            total["atomic_bytes"] += threads * access.bytes
            total["atomic_words"] += counted
    elif access.space == "global":
        total[f"global_{access.kind}_bytes"] += threads * access.bytes
        total["requests"] += warps
        total["sectors"] += counted if access.counter is not None else threads * access.bytes / SECTOR_BYTES
    else:
        least = warps * max(1, 32 * access.bytes // _BANK_BYTES)
        total["shared_passes"] += counted if access.counter is not None else least
        total["min_shared_passes"] += min(least, counted) if access.counter is not None else least


@dataclass(frozen=True)
class _OpenBlock:
    """A block whose end is not reached yet."""

    counter: int
    operations: list[str] = field(default_factory=list)
    accesses: list[MemoryAccess] = field(default_factory=list)

    def closed(self) -> BasicBlock:
        """The block as it is counted."""
        uses: dict[str, float] = {}
        for operation in self.operations:
            for pipe, cost in _costs(operation).items():
                uses[pipe] = uses.get(pipe, 0.0) + cost
        executed = [name for name in self.operations if not name.startswith(_FOLDED)]
        barriers = sum(name.startswith(_BARRIERS) for name in self.operations)
        return BasicBlock(self.counter, len(executed), uses, tuple(self.accesses), barriers)


class _Counting:
    """Goes through PTX line by line, adds counters and remembers what they count."""

    def __init__(self) -> None:
        self.blocks: list[BasicBlock] = []
        self.counters = 0
        self._block: _OpenBlock | None = None  # none where the next instruction begins one

    def counted(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines with counters between them."""
        depth = 0  # of braces: instructions are in those of functions
        for line in lines:
            code = line.partition("//")[0]
            opened = code.count("{") - code.count("}")
            ends_function = depth == 1 and opened < 0
            if ends_function or (depth and _LABEL.match(code)):
                self._close()
            depth += opened
            instruction = _INSTRUCTION.match(code) if depth else None
            if instruction is not None:
                yield from self._counters_for(instruction)
            yield line
            if instruction is not None and instruction["operation"].startswith(_BRANCHES):
                self._close()

    def _counters_for(self, instruction: re.Match[str]) -> Iterator[str]:
        """The counters of the block that an instruction begins, if it does, and of its access to memory."""
        if self._block is None:
            self._block = _OpenBlock(self._take(2))
            yield _BLOCK.format(counter=_place(self._block.counter))
        self._block.operations.append(instruction["operation"])
        access = _access(instruction["operation"], instruction["operands"])
        if access is None:
            return
        is_counted = access.space == "global" or (access.space == "shared" and access.kind != "atomic")
        if is_counted and access.address is not None and not instruction["predicate"]:
            counter = self._take(1)
            yield _probe(access, access.address, _place(counter))
            access = replace(access, counter=counter)
        self._block.accesses.append(access)

    def _take(self, count: int) -> int:
        first, self.counters = self.counters, self.counters + count
        return first

    def _close(self) -> None:
        if self._block is not None:
            self.blocks.append(self._block.closed())
        self._block = None


def _place(counter: int) -> str:
    """A counter's address in PTX."""
    return f"{VARIABLE}+{counter * COUNTER_BYTES}"


def _costs(operation: str) -> Mapping[str, float]:
    product = _PRODUCT.match(operation)
    if product is not None:
        warps = 4 if product["kind"].startswith("wgmma") else 1  # that share the work
        multiply_adds = int(product["m"]) * int(product["n"]) * int(product["k"]) / warps
        words = re.split(r"[.:]+", operation)
        if "f64" in words:
            return {"float64": multiply_adds / 64}  # at twice the rate of the other units
        cost = next((cost for kind, cost in _TENSOR_COSTS.items() if kind in words), 1.0)
        return {"tensor": cost * multiply_adds / (64 if "sp" in words else 32)}
    return next((costs for pattern, costs in _COSTS if pattern.match(operation)), {})


def accesses(ptx: str) -> Iterator[MemoryAccess]:
    """The accesses to memory of a PTX text."""
    instructions = filter(None, map(_INSTRUCTION.match, ptx.splitlines()))
    accessed = (_access(one["operation"], one["operands"]) for one in instructions)
    yield from (access for access in accessed if access is not None)


def _access(operation: str, operands: str) -> MemoryAccess | None:
    """The access to memory that an operation is; None for any other."""
    words = operation.split(".")
    if operation.startswith("cp.async.c"):
        size = int(operands.replace(" ", "").split(",")[2]) if operands.count(",") >= 2 else 0
        return MemoryAccess("global", "load", size, _address(operands, last=True))
    kinds = {"ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic"}
    if words[0] not in kinds or "param" in words or "const" in words or "async" in words:
        return None
    space = next(
        (word for word in words if word in ("global", "local") or word.startswith("shared")), "global"
    )
    width = _WIDTH.search(words[-1])
    vector = next((int(word[1]) for word in words if re.fullmatch(r"v[248]", word)), 1)
    size = vector * int(width[1]) * int(width[2] or 1) // 8 if width else 4
    return MemoryAccess(space.partition(":")[0], kinds[words[0]], size, _address(operands))


def _address(operands: str, *, last: bool = False) -> _Address | None:
    addresses = _ADDRESS.findall(operands)
    if not addresses:
        return None
    base, offset = addresses[-1 if last else 0]
    return _Address(base.strip(), int(offset or 0))


def _probe(access: MemoryAccess, address: _Address, counter: str) -> str:
    """The code that counts what a warp's access touches."""
    width = max(4, min(16, access.bytes))
    if access.space == "shared":
        shift, passes = width.bit_length() - 1, _PASSES
    else:
        shift, passes = (_WORD_SHIFT if access.kind == "atomic" else _SECTOR_SHIFT), ""
    head = _NARROW if _NARROW_REGISTER.match(address.base) else _WIDE
    return (_OPEN + head + _DISTINCT + passes + _CLOSE).format(
        base=address.base,
        offset=address.offset,
        shift=shift,
        last_group=_BANK_BYTES // width - 1,
        counter=counter,
    )


_BLOCK = """\t{{ .reg .b32 at_m, at_l; .reg .b64 at_n; .reg .pred at_p;
\tactivemask.b32 at_m;
\tmov.u32 at_l, %lanemask_lt;
\tand.b32 at_l, at_l, at_m;
\tsetp.eq.u32 at_p, at_l, 0;
\tpopc.b32 at_m, at_m;
\tcvt.u64.u32 at_n, at_m;
\t@at_p red.global.add.u64 [{counter}], 1;
\t@at_p red.global.add.u64 [{counter}+8], at_n; }}"""
_OPEN = """\t{{ .reg .b32 at_m, at_l, at_k, at_f; .reg .b64 at_a; .reg .pred at_p, at_q;
\tactivemask.b32 at_m;
\tmov.u32 at_l, %lanemask_lt;
"""
_WIDE = "\tmov.u64 at_a, {base};\n\tadd.s64 at_a, at_a, {offset};\n"
_NARROW = "\tmov.u32 at_k, {base};\n\tadd.s32 at_k, at_k, {offset};\n\tcvt.u64.u32 at_a, at_k;\n"
# at_p: first of the warp at its place; at_k: how many places there are
_DISTINCT = """\tshr.u64 at_a, at_a, {shift};
\tmatch.any.sync.b64 at_k, at_a, at_m;
\tand.b32 at_k, at_k, at_l;
\tsetp.eq.u32 at_p, at_k, 0;
\tvote.sync.ballot.b32 at_k, at_p, at_m;
\tpopc.b32 at_k, at_k;
"""
# the most different places in one group of banks; threads that are not the first at theirs stay apart
_PASSES = """\tcvt.u32.u64 at_k, at_a;
\tand.b32 at_k, at_k, {last_group};
\tmov.u32 at_f, %laneid;
\tadd.u32 at_f, at_f, 64;
\tselp.b32 at_k, at_k, at_f, at_p;
\tmatch.any.sync.b32 at_k, at_k, at_m;
\tpopc.b32 at_k, at_k;
\tredux.sync.max.u32 at_k, at_k, at_m;
"""
_CLOSE = """\tand.b32 at_l, at_l, at_m;
\tsetp.eq.u32 at_q, at_l, 0;
\tcvt.u64.u32 at_a, at_k;
\t@at_q red.global.add.u64 [{counter}], at_a; }}"""
