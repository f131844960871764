"""Macros that only a diagnosis defines, for a source that leaves out a part of its work, or one trouble."""

PARTS = ("MEMORY_ONLY", "COMPUTE_ONLY")
TROUBLES = (
    *("NO_BANK_CONFLICTS", "COALESCED", "NO_DIVERGENCE", "NO_ATOMICS", "NO_BARRIERS"),
    *("NO_BOUNDS_CHECKS", "NO_SPILLS"),
)
DIAGNOSIS_MACROS = (*PARTS, *TROUBLES)
