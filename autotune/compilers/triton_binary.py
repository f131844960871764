"""The binary of a Triton kernel: code for each way in which a space launches it, with what a launch needs.

Triton compiles a kernel for the types of its arguments, and for what is known of their values: a number that
is a multiple of 16 gives faster code. So one configuration has several codes if its problem sizes differ in
that. The compiler also decides what a launch plan gives elsewhere: shared memory and the threads of a block.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import prod

from autotune.compilers.resource_usage import Resources, read_resources
from autotune.core.records import Launch
from autotune.core.trials import Binary

_MAGIC = b"autotune triton\n"
UNUSED = "unused pointer"  # stands for the hidden pointers of a kernel; no argument has this name


@dataclass(frozen=True)
class TritonBinary:
    """The code of one kernel, a cubin or AMD's code object, and what its compiler decided.

    `passed` has the places of the launch plan's arguments that the kernel takes; a number that equals 1 is
    compiled into it. After these it takes `hidden` pointers to scratch memory. It uses the first, if any, and
    only if it needs `scratch_bytes` for each block: descriptors of tensors that it makes are there.
    """

    symbol: str
    warps: int
    shared_bytes: int  # dynamic
    cluster: int  # blocks that run one program together
    passed: tuple[int, ...]
    hidden: int
    cubin: bytes = b""
    scratch_bytes: int = 0
    warp_size: int = 32
    amd: Resources | None = None  # of a kernel for AMD's GPUs; cubins have theirs in them

    @property
    def resources(self) -> Resources:
        """The resources of the kernel."""
        return self.amd or read_resources(self.cubin)[self.symbol]


def pack(kernels: Mapping[str, TritonBinary]) -> bytes:
    """The content of a binary with these kernels, by the entries of launches."""
    heads = {
        entry: vars(kernel) | {"cubin": len(kernel.cubin), "amd": kernel.amd and asdict(kernel.amd)}
        for entry, kernel in kernels.items()
    }
    head = json.dumps(heads).encode()
    return _MAGIC + head + b"\n" + b"".join(kernel.cubin for kernel in kernels.values())


def unpack(binary: Binary) -> dict[str, TritonBinary]:
    """The kernels of a binary by the entries of launches; none if it is a plain cubin."""
    if not binary.data.startswith(_MAGIC):
        return {}
    end = binary.data.index(b"\n", len(_MAGIC))
    place, kernels = end + 1, {}
    for entry, head in json.loads(binary.data[len(_MAGIC) : end]).items():
        size = head["cubin"]
        cubin = binary.data[place : place + size]
        amd = head.get("amd")
        read = {"passed": tuple(head["passed"]), "cubin": cubin, "amd": Resources(**amd) if amd else None}
        kernels[entry] = TritonBinary(**head | read)
        place += size
    return kernels


def joined(binaries: Mapping[str, Binary]) -> Binary:
    """One binary of several entries' binaries, each of which has one kernel; some may be the same."""
    kernels = {entry: kernel for entry, one in binaries.items() for kernel in unpack(one).values()}
    data, parts = pack(kernels), set(binaries.values())
    return Binary(
        data,
        hashlib.sha256(data).hexdigest(),
        "",
        sum(one.compile_ms for one in parts),
        registers=max((one.registers for one in parts if one.registers is not None), default=None),
        spill_bytes=max((one.spill_bytes for one in parts if one.spill_bytes is not None), default=None),
        shared_bytes=max((one.shared_bytes for one in parts if one.shared_bytes is not None), default=None),
        cached=bool(parts) and all(one.cached for one in parts),
        symbols={entry: kernel.symbol for entry, kernel in kernels.items()},
    )


def code_sha256(binary: Binary) -> str:
    """A hash of what a binary runs: in Triton without the names of its kernels, which have all options."""
    kernels = unpack(binary)
    if not kernels:
        return binary.sha256
    numbered = {str(number): kernel for number, kernel in enumerate(kernels.values())}
    return hashlib.sha256(pack(numbered)).hexdigest()


def completed(step: Launch, kernel: TritonBinary) -> Launch:
    """A launch with what the compiler decided: a grid of a Triton kernel counts programs."""
    programs, y, z = step.grid
    hidden = [UNUSED] * kernel.hidden
    if kernel.scratch_bytes:
        hidden[0] = scratch_name(step)
    return replace(
        step,
        grid=(programs * kernel.cluster, y, z),
        block=(kernel.warp_size * kernel.warps, 1, 1),
        shared_bytes=kernel.shared_bytes,
        cluster=(kernel.cluster, 1, 1),
        arguments=(*(step.arguments[place] for place in kernel.passed), *hidden),
    )


def scratch_name(step: Launch) -> str:
    """The name of a launch's scratch memory; no argument has it."""
    return f"scratch of {step.entry}"


def scratch_bytes(step: Launch, kernel: TritonBinary) -> int:
    """The size of a launch's scratch memory."""
    return prod(step.grid) * kernel.cluster * kernel.scratch_bytes
