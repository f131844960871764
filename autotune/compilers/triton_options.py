"""The options of Triton that only GPUs of NVIDIA or AMD have, and the values that an architecture takes.

Triton itself ignores options of the other vendor, and some values of its own: configurations that differ in
them would be the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from autotune.core.launch_plan import AMD_OPTIONS
from autotune.errors import CompileError
from autotune.hardware.architectures import PARTITIONS, Architecture

_OTHER_FLOAT8 = {"gfx942": "its own is float8_e4m3fnuz", "gfx1100": "it has no float8"}
_NEUTRAL = {"maxnreg": 255, "waves_per_eu": 0, "matrix_instr_nonkdim": 0, "kpack": 1}  # change nothing


def own_options(options: Mapping[str, int], where: Architecture | None) -> dict[str, int]:
    """The options that an architecture has; raises CompileError for values that it does not take.

    One of the other vendor may have the value that changes nothing. An unknown architecture is NVIDIA's.
    """
    is_amd = where is not None and where.is_amd
    own = {}
    for name, value in options.items():
        if name in _NEUTRAL and (name in AMD_OPTIONS) != is_amd:
            if value != _NEUTRAL[name]:
                vendor, here = ("NVIDIA", "AMD") if is_amd else ("AMD", "NVIDIA")
                raise CompileError(
                    f"{name}={value} is an option for {vendor}'s GPUs; {here}'s take only "
                    f"{name}={_NEUTRAL[name]}: exclude others with a constraint on device.vendor"
                )
            continue
        if where is not None and is_amd and name in AMD_OPTIONS and value not in _taken(name, where):
            listed = ", ".join(map(str, _taken(name, where)))
            raise CompileError(f"{name}={value}: {where.name} takes {listed}")
        own[name] = value
    return own


def foreign_float8(where: Architecture, types: Iterable[str]) -> str:
    """The reason why an architecture has no float8_e4m3fn, which Triton would emulate; empty if it has.

    `types` are those of the arguments as Triton writes them.
    """
    if where.name in _OTHER_FLOAT8 and any(kind.endswith("fp8e4nv") for kind in types):
        return f"no float8_e4m3fn on {where.name}: {_OTHER_FLOAT8[where.name]}"
    return ""


def _taken(name: str, where: Architecture) -> range | tuple[int, ...]:
    is_cdna = where.device.warp_size == 64
    if name == "waves_per_eu":
        return range(where.warps // PARTITIONS + 1)
    if name == "matrix_instr_nonkdim":
        return (0, 16, 32) if is_cdna else (0, 16)
    return (1, 2) if where.name == "gfx942" else (1,)
