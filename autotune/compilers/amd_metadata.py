"""Read what a kernel for AMD's GPUs uses from the metadata in its assembly: registers, spills, parameters."""

from __future__ import annotations

from typing import Any

import yaml

from autotune.compilers.resource_usage import Resources

_START, _END = "\t.amdgpu_metadata\n", "\t.end_amdgpu_metadata"
_REGISTER_BYTES = 4


def read_kernel(assembly: str) -> tuple[Resources, list[int]]:
    """The resources of the only kernel of an assembly text, and the sizes of its parameters in bytes.

    Raises ValueError if the text has no metadata of one kernel.

    Triton allocates shared memory at the launch, so none is in the metadata. `vgpr_count` includes the
    accumulation registers on the architectures that have some.
    """
    try:
        text = assembly[assembly.index(_START) + len(_START) : assembly.index(_END)]
        (kernel,) = yaml.safe_load(text)["amdhsa.kernels"]
        sizes = [
            part[".size"]
            for part in kernel.get(".args", ())
            if not part[".value_kind"].startswith("hidden")  # of the system
        ]
        return _resources(kernel), sizes
    except (ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        raise ValueError(f"the assembly has no metadata of one kernel: {error}") from None


def _resources(kernel: dict[str, Any]) -> Resources:
    return Resources(
        registers=kernel[".vgpr_count"],
        local_bytes=kernel[".private_segment_fixed_size"],
        spill_bytes=kernel[".vgpr_spill_count"] * _REGISTER_BYTES,
        shared_bytes=kernel[".group_segment_fixed_size"],
        max_threads=kernel[".max_flat_workgroup_size"],
        scalar_registers=kernel[".sgpr_count"],
        accumulation_registers=kernel.get(".agpr_count", 0),
    )
