"""Global memory of a GPU."""

from __future__ import annotations

import ctypes

from autotune.cuda.driver import call, check, freed_with
from autotune.hardware.cuda_driver import driver

_MEMSET = {1: "cuMemsetD8Async", 2: "cuMemsetD16Async", 4: "cuMemsetD32Async"}


class Memory:
    """Memory of the current context, which is freed with the last reference to it."""

    def __init__(self, context: ctypes.c_void_p, size_bytes: int) -> None:
        address = ctypes.c_uint64()
        room_bytes = ctypes.c_size_t(max(1, size_bytes))  # the driver refuses to allocate nothing
        # not from a pool: some kernels take 5% longer in its memory
        check(f"{size_bytes:,} bytes", driver().cuMemAlloc_v2(ctypes.byref(address), room_bytes))
        self.address = address.value
        freed_with(self, context, "cuMemFree_v2", address)  # cuMemFree waits for enqueued work

    def __int__(self) -> int:
        return self.address


def fill(context: ctypes.c_void_p, address: int, element: bytes, size_bytes: int) -> None:
    """Fill memory with copies of an element, and wait, even in the middle of a capture.

    An element of more than 4 bytes consists of equal parts of 4 bytes.
    """
    from autotune.cuda.streams import Stream  # few first calls fill anything

    part, stream = element[:4], Stream(context)
    value, count = int.from_bytes(part, "little"), size_bytes // len(part)
    memory = ctypes.c_uint64(address)
    call(_MEMSET[len(part)], memory, ctypes.c_uint(value), ctypes.c_size_t(count), stream.handle)
    stream.wait()
