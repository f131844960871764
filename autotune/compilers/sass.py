"""Facts about a kernel's machine code, from NVIDIA's disassembler where there is one."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import SetupError
from autotune.processes.scratch_folder import scratch_folder

_TIMEOUT_S = 60.0
_KERNEL = re.compile(r"^\.text\.(.+):$")
_LABEL = re.compile(r"^(\.L_\w+):")
_INSTRUCTION = re.compile(
    r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)((?:\.[A-Z0-9_]+)*)(.*);"
)
_TARGET = re.compile(r"`\((\.L_\w+)\)")
# What instructions are, by how they start; the first that matches counts.
_KINDS = (
    ("float64", ("DADD", "DMUL", "DFMA", "DSETP")),
    ("special", ("MUFU",)),
    ("tensor", ("HMMA", "IMMA", "DMMA", "QGMMA", "HGMMA", "WGMMA")),
    ("half", ("HADD2", "HMUL2", "HFMA2")),
    ("float32", ("FADD", "FMUL", "FFMA", "FSEL", "FSET", "FMNMX", "FCHK")),
    ("global load", ("LDG", "LDGSTS", "UTMALDG")),
    ("global store", ("STG",)),
    ("shared load", ("LDS", "LDSM")),
    ("shared store", ("STS",)),
    ("local load", ("LDL",)),
    ("local store", ("STL",)),
    ("atomic", ("ATOM", "RED")),
    ("barrier", ("BAR", "WARPSYNC", "DEPBAR", "LDGDEPBAR")),
    ("branch", ("BRA", "BSSY", "BSYNC", "EXIT", "CALL", "RET", "BRX", "BREAK")),
    ("conversion", ("I2F", "F2I", "F2F", "I2I", "FRND")),
    (
        "integer",
        ("I", "LOP", "LEA", "SHF", "PRMT", "SEL", "VIADD", "POPC", "FLO", "SGXT", "BMSK", "PLOP", "U", "P2R"),
    ),
)


@dataclass(frozen=True)
class MachineCode:
    """Facts about the machine code of one kernel."""

    instructions: int
    kinds: Mapping[str, int]  # instructions of each kind, such as float32 or shared load
    loop_kinds: Mapping[str, int]  # the same in the longest innermost loop; empty without a loop
    access_bits: Mapping[tuple[str, int], int]  # accesses by kind and bits, such as ("global load", 128)
    is_unrolled: bool | None = None  # True if unrolling changes the code; None where the source asks for none


def without_unrolling(source: str) -> str:
    """The source with each loop that it asks to unroll rolled, by `#pragma` or by UNROLL_LOOP."""
    rolled = re.sub(r"(#\s*pragma\s+unroll\b)[^\n]*", r"\1 1", source)
    return re.sub(r"(PRAGMA\(unroll|_Pragma\(\"unroll)\b[^)\"]*", r"\1 1", rolled)


def read_machine_code(cubin: bytes, program: str) -> dict[str, MachineCode]:
    """The facts of every kernel of a cubin, by symbol; raises SetupError where the disassembler fails."""
    with scratch_folder() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        try:
            done = subprocess.run(
                [program, "-c", file], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
            raise SetupError(f"{program}: {said[-1] if said else error}") from None
    return parse_disassembly(done.stdout)


def parse_disassembly(text: str) -> dict[str, MachineCode]:
    """The facts of every kernel in the text that nvdisasm prints."""
    kernels: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for line in text.splitlines():
        if match := _KERNEL.match(line):
            lines = kernels.setdefault(match[1], [])
        elif line.startswith("//---"):
            lines = None
        elif lines is not None:
            lines.append(line)
    return {name: _facts(lines) for name, lines in kernels.items()}


def _facts(lines: Sequence[str]) -> MachineCode:
    kinds: list[str] = []
    labels: dict[str, int] = {}
    loops: list[tuple[int, int]] = []  # first and last instruction
    bits: Counter[tuple[str, int]] = Counter()
    for line in lines:
        if label := _LABEL.match(line):
            labels[label[1]] = len(kinds)
        elif match := _INSTRUCTION.match(line):
            if match[1] == "NOP":
                continue
            kind = _kind(match[1])
            if kind.startswith(("global", "shared")):
                width = next((int(word) for word in match[2].split(".") if word in ("64", "128")), 32)
                bits[kind, width] += 1
            target = _TARGET.search(match[3])
            start = labels.get(target[1], len(kinds)) if match[1] == "BRA" and target else len(kinds)
            if start < len(kinds):  # not the endless loop behind the end
                loops.append((start, len(kinds)))
            kinds.append(kind)
    inner = [
        loop
        for loop in loops
        if not any(other != loop and loop[0] <= other[0] and other[1] <= loop[1] for other in loops)
    ]
    first, last = max(inner, key=lambda loop: loop[1] - loop[0], default=(0, -1))
    inner_kinds = dict(Counter(kinds[first : last + 1]))
    return MachineCode(len(kinds), dict(Counter(kinds)), inner_kinds, dict(bits))


def _kind(operation: str) -> str:
    return next((kind for kind, starts in _KINDS if operation.startswith(starts)), "other")
