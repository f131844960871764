"""The alignment of arrays that a configuration needs: its widest memory access."""

from __future__ import annotations

import re
from functools import lru_cache

from autotune.compilers.ptx_counters import accesses
from autotune.core.launch_plan import TRITON
from autotune.errors import CompileError, MissingExtra

_USUAL_ALIGNMENT_BYTES = 16  # of the widest accesses of most programs; what Triton compiles for
_BULK_COPY = re.compile(r"\bcp\.(?:reduce\.)?async\.bulk\.[\w.:]*\bglobal\b")
_BULK_ALIGNMENT_BYTES = 16
# A matrix has to begin at a multiple of the bytes that each thread holds of it.
_MATRIX = re.compile(r"\bwmma\.(?:load|store)\.([\w.:]+)\s[^;]*?\{([^}]*)\}")


@lru_cache(maxsize=256)
def needed_alignment_bytes(
    architecture: str, kind: str, text: str, options: tuple[str, ...], names: tuple[str, ...]
) -> int:
    """The alignment that a program needs, as its PTX shows; 16 bytes where no compiler gives PTX.

    `text` is empty if there is only a binary; `names` are the C++ names of its kernels.
    """
    if kind == TRITON or not text:
        return _USUAL_ALIGNMENT_BYTES
    try:
        from autotune.compilers.nvrtc import CudaCompiler

        ptx, _ = CudaCompiler(architecture).ptx(text, options, names)
    except (CompileError, MissingExtra, ImportError):
        return _USUAL_ALIGNMENT_BYTES
    return widest_access_bytes(ptx)


def widest_access_bytes(ptx: str) -> int:
    """The bytes of the widest access to global memory in a PTX text."""
    widths = [access.bytes for access in accesses(ptx) if access.space == "global"]
    widths += [_BULK_ALIGNMENT_BYTES] * (_BULK_COPY.search(ptx) is not None)
    for modifiers, registers in _MATRIX.findall(ptx):
        if not re.search(r"\.shared\b", modifiers):
            widths.append((registers.count(",") + 1) * (8 if modifiers.endswith("f64") else 4))
    return max(widths, default=1)
