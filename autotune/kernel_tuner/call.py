"""The kernel's description in a script's call of `tune_kernel` or `run_kernel`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class KernelCall:
    """A kernel with its parameters and arguments, by the names that Kernel Tuner documents."""

    kernel_name: str
    kernel_source: Any
    problem_size: Any
    arguments: Sequence[Any]
    tune_params: Mapping[str, Sequence[Any]]
    grid_div_x: Any = None
    grid_div_y: Any = None
    grid_div_z: Any = None
    restrictions: Any = None
    answer: Sequence[Any] | None = None
    atol: float = 1e-6
    verify: Callable[..., Any] | None = None
    lang: str | None = None
    device: int = 0
    smem_args: Mapping[str, Any] | None = None
    cmem_args: Mapping[str, Any] | None = None
    compiler_options: Sequence[str] | None = None
    defines: Mapping[str, Any] | None = None
    block_size_names: Sequence[str] | None = None
    observers: Sequence[Any] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> KernelCall:
        """The call of a function that has been given these arguments, others among them."""
        return cls(**{field.name: given[field.name] for field in fields(cls) if field.name in given})
