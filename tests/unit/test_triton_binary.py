"""A packed binary of Triton is read back, and completes the launch that it is compiled for."""

from autotune.compilers.triton_binary import (
    UNUSED,
    TritonBinary,
    completed,
    joined,
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


def test_binaries_of_single_entries_are_joined_as_if_they_were_compiled_together():
    small = TritonBinary("f", 8, 1024, 2, (0, 2), 2, b"cubin", scratch_bytes=8)
    large = TritonBinary("f", 8, 2048, 2, (0, 1, 2), 2, b"longer cubin")
    parts = [
        Binary(pack({"f(1)": small}), "", "", 3.0, 40, 0, 1024, cached=True),
        Binary(pack({"f(3)": large}), "", "", 4.0, 32, 8, 2048),
    ]
    whole = joined({"f(1)": parts[0], "f(2)": parts[0], "f(3)": parts[1]})
    assert whole.data == pack({"f(1)": small, "f(2)": small, "f(3)": large})
    assert (whole.registers, whole.spill_bytes, whole.shared_bytes) == (40, 8, 2048)
    assert (whole.compile_ms, whole.cached) == (7.0, False)
    assert whole.symbols == {"f(1)": "f", "f(2)": "f", "f(3)": "f"}


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
