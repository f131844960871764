"""Read the resources that kernels use from a cubin: registers, spills, stack and shared memory.

A cubin is a 64-bit ELF file. Its sections are named after kernels: `.text.KERNEL` is the code,
`.nv.shared.KERNEL` the static shared memory, `.nv.info.KERNEL` a list of attributes, and `.nv.info` the list
of those that name a symbol. An attribute is a format, a kind (the numbers below, which NVIDIA's
`cuobjdump -elf` shows as EIATTR names), a length and its values. The compiler's own report,
`--ptxas-options=-v`, gives the same figures.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from autotune.compilers.elf import Section, read_sections, read_symbols

_DEVICE_RUNTIME = "_cuda_device_runtime_"  # in the names of the kernels that nvcc links in
_INITIALISED = ".nv.global.init"  # the section of variables that have a value at the start
_RESERVED = ".nv.reservedSmem.offset0"  # the symbol where the system has reserved shared memory
_ENTRY = 0x10  # of a symbol: a kernel, which the host can launch
_RELOCATIONS = {".rel": "<QQ", ".rela": "<QQ8x"}  # offset, symbol and type; the latter adds a number
_SIZED = 4  # the format of an attribute that is followed by values
_MAX_THREADS, _FRAME_SIZE, _REGCOUNT, _ANNOTATIONS = 0x05, 0x11, 0x2F, 0x55
_SPILL = 1  # annotation of an instruction that moves a register to local memory or back
_STORE_LOCAL = 0x387
_STORED_BYTES = (1, 1, 2, 2, 4, 8, 16, 16)  # by the width field of a store
_INSTRUCTION_BYTES = 16
_RESERVED_SHARED_BYTES = 1024  # by the system, in every block


@dataclass(frozen=True)
class Resources:
    """Resources of one kernel: per thread, but `shared_bytes` per block.

    `spill_bytes` are moved out of registers for lack of space; `local_bytes` is all local memory, which
    includes arrays that are indexed at run time.
    """

    registers: int
    local_bytes: int
    spill_bytes: int
    shared_bytes: int
    max_threads: int | None  # of a block, by __launch_bounds__
    scalar_registers: int = 0  # per warp; only AMD's GPUs have such
    accumulation_registers: int = 0  # of matrix products on AMD's GPUs; part of `registers`


def read_resources(cubin: bytes) -> dict[str, Resources]:
    """The resources of every kernel of a cubin, by name; raises ValueError for any other file."""
    try:
        numbered = read_sections(cubin)
        sections = {section.name: section for section in numbered}
        symbols = read_symbols(numbered)
        figures = _figures(sections[".nv.info"].content, [symbol.name for symbol in symbols])
        reserved_bytes = _RESERVED_SHARED_BYTES if any(one.name == _RESERVED for one in symbols) else 0
        kernels = [one.name for one in symbols if one.other & _ENTRY and _DEVICE_RUNTIME not in one.name]
        return {name: _resources(name, sections, figures, reserved_bytes) for name in kernels}
    except (struct.error, IndexError, KeyError, ValueError):
        raise ValueError("not a cubin, or not one whose sections can be read") from None


def read_pointers(cubin: bytes) -> dict[str, str]:
    """The variables of a cubin that are initialised with an address, and the symbols that they point to.

    Before Hopper, nvcc has a section of its own for entries that add nothing to the address.
    """
    numbered = read_sections(cubin)
    sections = {section.name: section for section in numbered}
    symbols = read_symbols(numbered)
    variables = {(symbol.section, symbol.value): symbol.name for symbol in symbols}
    index = [section.name for section in numbered].index(_INITIALISED)
    relocations = [
        entry
        for kind, layout in _RELOCATIONS.items()
        if (section := sections.get(f"{kind}{_INITIALISED}"))
        for entry in struct.iter_unpack(layout, section.content)
    ]
    pointed = {(index, offset): symbols[info >> 32].name for offset, info in relocations}
    return {variables[place]: name for place, name in pointed.items() if place in variables}


def _resources(
    name: str,
    sections: Mapping[str, Section],
    figures: Mapping[tuple[int, str], int],
    reserved_bytes: int,
) -> Resources:
    attributes = dict(_attributes(sections[f".nv.info.{name}"].content))
    shared = sections.get(f".nv.shared.{name}")
    bounds = attributes.get(_MAX_THREADS)
    return Resources(
        registers=figures[_REGCOUNT, name],
        local_bytes=figures[_FRAME_SIZE, name],
        spill_bytes=_spilled(attributes.get(_ANNOTATIONS, ()), sections[f".text.{name}"].content),
        shared_bytes=max(0, shared.size_bytes - reserved_bytes) if shared else 0,  # which includes these
        max_threads=bounds[0] * bounds[1] * bounds[2] if bounds else None,
    )


def _attributes(content: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Kind and 32-bit values of each attribute with values."""
    offset = 0
    while offset < len(content):
        form, kind, length = struct.unpack_from("<BBH", content, offset)
        offset += 4
        if form == _SIZED:
            yield kind, struct.unpack_from(f"<{length // 4}I", content, offset)
            offset += length


def _figures(content: bytes, symbols: list[str]) -> dict[tuple[int, str], int]:
    """The attributes that assign one number to a symbol, by kind and symbol."""
    pairs = [(kind, values) for kind, values in _attributes(content) if len(values) == 2]
    return {(kind, symbols[values[0]]): values[1] for kind, values in pairs}


def _spilled(annotations: tuple[int, ...], code: bytes) -> int:
    """Bytes that the annotated spill stores write to local memory."""
    total = 0
    for kind, offset in zip(annotations[::2], annotations[1::2], strict=False):
        if kind == _SPILL and offset + _INSTRUCTION_BYTES <= len(code):
            low, high = struct.unpack_from("<QQ", code, offset)
            if low & 0xFFF == _STORE_LOCAL:
                total += _STORED_BYTES[high >> 9 & 7]
    return total
