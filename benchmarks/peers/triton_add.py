"""The addition of two arrays in Triton, as its tutorials write one: for `call_overhead.py`."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

BLOCK = 256


@triton.jit
def add_kernel(a, b, c, count, BLOCK: tl.constexpr):  # noqa: ANN001, ANN201, N803
    """Add one block of elements."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_inside = places < count
    total = tl.load(a + places, mask=is_inside) + tl.load(b + places, mask=is_inside)
    tl.store(c + places, total, mask=is_inside)


def add(a: Any, b: Any, c: Any) -> None:
    """Queue the launch on tensors of PyTorch."""
    count = a.numel()
    add_kernel[(triton.cdiv(count, BLOCK),)](a, b, c, count, BLOCK=BLOCK)
