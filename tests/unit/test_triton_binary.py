"""A packed binary of Triton is read back, and completes the launch that it is compiled for."""

from autotune.compilers.triton_binary import (
    UNUSED,
    TritonBinary,
    completed,
    pack,
    scratch_bytes,
    scratch_name,
    unpack,
)
from autotune.core.records import Launch
from autotune.core.trials import Binary


def test_a_packed_binary_is_read_back():
    kernel = TritonBinary("f", 8, 1024, 2, (0, 2), 2, b"cubin")
    data = pack({"f('i32')": kernel, "f('i32:16')": kernel})
    assert unpack(Binary(data, "", "", 0.0)) == {"f('i32')": kernel, "f('i32:16')": kernel}
    assert unpack(Binary(b"\x7fELF", "", "", 0.0)) == {}


def test_the_compiler_decides_block_shared_memory_and_cluster():
    step = Launch("f", (10, 3, 1), (128, 1, 1), 0, ("x", "one", "n"))
    launched = completed(step, TritonBinary("f", 8, 1024, 2, (0, 2), 2, b""))
    assert (launched.grid, launched.block, launched.cluster) == ((20, 3, 1), (256, 1, 1), (2, 1, 1))
    assert (launched.shared_bytes, launched.arguments) == (1024, ("x", "n", UNUSED, UNUSED))


def test_the_first_hidden_pointer_is_that_of_the_scratch_memory_of_all_blocks():
    step = Launch("f", (10, 3, 1), (128, 1, 1), 0, ("x",))
    kernel = TritonBinary("f", 4, 0, 2, (0,), 2, b"", scratch_bytes=384)
    assert completed(step, kernel).arguments == ("x", scratch_name(step), UNUSED)
    assert scratch_bytes(step, kernel) == 10 * 3 * 2 * 384
