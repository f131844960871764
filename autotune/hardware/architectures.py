"""GPU architectures: the words that identify them in device names, and limits of their multiprocessors.

Sources: CUDA Programming Guide 13, appendix "Compute Capabilities"; AMD's backend of LLVM; Mesa for the
shared memory of RDNA; the vendors' data sheets for the example GPU of each architecture.
"""

from __future__ import annotations

from autotune.core.frozen import dataclass
from autotune.core.records import DeviceInfo
from autotune.errors import InputError

NOT_HERE = "none"  # driver and runtime of a GPU of which only the limits are known
WARP = 32
REGISTERS = 65_536  # of a multiprocessor, and at most of one block
MAX_THREADS = 1024  # of a block
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65_535, 65_535)
MAX_CLUSTER = 16  # blocks; more than 8 are not portable
PARTITIONS = 4  # of a multiprocessor, each with an equal part of its registers; AMD's SIMDs
# Words that decide the architecture; the first match counts.
NAME_WORDS = {
    "sm_103": "b300 gb300",
    "sm_100": "b100 b200 gb200",
    "sm_120": "blackwell 5050 5060 5070 5080 5090",  # after sm_100 and sm_103, which are also Blackwell
    "sm_90": "h20 h100 h200 h800 gh200",
    "sm_89": "ada l4 l20 l40 l40s 4050 4060 4070 4080 4090",
    "sm_86": "a2 a10 a10g a16 a40 a2000 a4000 a4500 a5000 a5500 a6000 3050 3060 3070 3080 3090",
    "sm_80": "a30 a100 a800",
    "sm_75": "t4 t4g 1650 1660 2060 2070 2080",
    "sm_70": "v100 gv100",
    "sm_61": "p4 p40 1030 1050 1060 1070 1080",
    "sm_60": "p100",
    "gfx950": "mi350x mi355x",
    "gfx942": "mi300a mi300x mi325x",
    "gfx90a": "mi210 mi250 mi250x",
    "gfx908": "mi100",
    "gfx1201": "9070 r9700",
    "gfx1100": "w7800 w7900 7900",
    "gfx1030": "w6800",
    "gfx1032": "w6600",
}


@dataclass(frozen=True)
class Architecture:
    """The limits of an architecture's multiprocessor, and an example of its GPUs.

    AMD's multiprocessor is a compute unit (CDNA) or a workgroup processor of two (RDNA). Its warp is called
    wavefront, its block workgroup, its shared memory LDS, and its register VGPR.
    """

    name: str  # "sm_90", "gfx942"
    warps: int  # at most resident at once
    blocks: int  # at most resident at once; on AMD's GPUs only blocks of several warps count
    shared_bytes: int
    reserved_shared_bytes: int  # by the system, in every block
    shared_memory_unit_bytes: int  # shared memory of a block is allocated in this unit
    device: DeviceInfo
    registers: int = REGISTERS // WARP // PARTITIONS  # of a partition, for each thread of a warp
    register_unit: int = 8  # registers of a thread are allocated in this unit
    scalar_registers: int | None = None  # of a partition, for whole warps; None without a limit

    @property
    def is_amd(self) -> bool:
        """True for AMD's GPUs, for which only Triton compiles."""
        return self.name.startswith("gfx")


def _architecture(
    name: str,
    warps: int,
    blocks: int,
    shared_kib: int,
    shared_unit_bytes: int,
    gpu: str,
    units: int,
    memory_gib: int,
    gb_per_s: float,
    cache_mib: int,
) -> Architecture:
    """AMD's CDNA has 64 threads in a warp and 512 registers for each; RDNA from version 3 on, 32 and 1536."""
    is_amd, is_rdna = name.startswith("gfx"), name.startswith(("gfx11", "gfx12"))
    reserved_bytes = 0 if is_amd or name == "sm_75" else 1024
    device = DeviceInfo(
        backend="hip" if is_amd else "cuda",
        name=gpu,
        slug=gpu.lower().replace(" ", "-"),
        kind="gpu",
        vendor="AMD" if is_amd else "NVIDIA",
        architecture=name,
        compute_units=units,
        warp_size=64 if is_amd and not is_rdna else WARP,
        max_threads_per_block=MAX_THREADS,
        shared_bytes_per_block=(64 if is_rdna else shared_kib) * 1024 - reserved_bytes,
        registers_per_block=None if is_amd else REGISTERS,
        memory_bytes=memory_gib * 2**30,
        memory_bandwidth_bytes_per_s=gb_per_s * 1e9,
        cache_bytes=cache_mib * 2**20,
        has_shuffle=True,
        driver=NOT_HERE,
        runtime=NOT_HERE,
    )
    limits = (name, warps, blocks, shared_kib * 1024, reserved_bytes, shared_unit_bytes, device)
    if is_rdna:
        return Architecture(*limits, registers=1536, register_unit=24)
    return Architecture(*limits, scalar_registers=800 if is_amd else None)


ARCHITECTURES = {
    item.name: item
    for item in (
        #             name    warps blocks KiB unit  GPU                     units GiB GB/s cache MiB
        _architecture("sm_75", 32, 16, 64, 256, "NVIDIA T4", 40, 16, 320, 4),
        _architecture("sm_80", 64, 32, 164, 128, "NVIDIA A100", 108, 40, 1555, 40),
        _architecture("sm_86", 48, 16, 100, 128, "NVIDIA A10", 72, 24, 600, 6),
        _architecture("sm_87", 48, 16, 164, 128, "NVIDIA Jetson AGX Orin", 16, 64, 204.8, 4),
        _architecture("sm_89", 48, 24, 100, 128, "NVIDIA L4", 58, 24, 300, 48),
        _architecture("sm_90", 64, 32, 228, 128, "NVIDIA H100", 132, 80, 3350, 50),
        _architecture("sm_100", 64, 32, 228, 128, "NVIDIA B200", 148, 180, 8000, 126),
        _architecture("sm_120", 48, 24, 100, 128, "NVIDIA GeForce RTX 5090", 170, 32, 1792, 96),
        _architecture("gfx942", 32, 16, 64, 512, "AMD Instinct MI300X", 304, 192, 5300, 256),
        _architecture("gfx950", 32, 16, 160, 1280, "AMD Instinct MI355X", 256, 288, 8000, 256),
        _architecture("gfx1100", 64, 32, 128, 1024, "AMD Radeon RX 7900 XTX", 48, 24, 960, 96),
        _architecture("gfx1201", 64, 32, 128, 1024, "AMD Radeon RX 9070 XT", 32, 16, 640, 64),
    )
}


def architecture(name: str) -> Architecture:
    """Look up an architecture such as "sm_90"; raises InputError with the known ones."""
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise InputError(
            f"unknown architecture {name!r}; expected one of {known}, or a GPU such as NVIDIA H200"
        )
    return ARCHITECTURES[name]
