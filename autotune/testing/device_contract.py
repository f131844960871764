"""The contract of device backends: memory, launches, errors and reported times."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from autotune.core.records import Launch
from autotune.core.trials import Binary
from autotune.devices.array_compare import ArrayComparison, Tolerance
from autotune.devices.base import Backend, Device
from autotune.errors import CompileError, LaunchError, OutOfMemory


def launch(entry: str = "twice", block: int = 64) -> Launch:
    """Four blocks of a kernel that takes x, y and n."""
    return Launch(entry, (4, 1, 1), (block, 1, 1), 0, ("x", "y", "n"))


class DeviceContract:
    """Inherit this class and define the fixtures `backend`, `source` and `broken`; pytest runs the contract.

    The source has a kernel `twice(x, y, n)` that writes two times the first n elements of x, int32, to y.
    """

    @pytest.fixture(scope="module")
    @classmethod
    def backend(cls) -> Backend:
        """The backend's module."""
        raise NotImplementedError("define a fixture `backend` that returns the backend's module")

    @pytest.fixture(scope="module")
    @classmethod
    def source(cls) -> str:
        """A kernel `twice` in the language of the backend."""
        raise NotImplementedError("define a fixture `source`")

    @pytest.fixture(scope="module")
    @classmethod
    def broken(cls) -> str:
        """A source that the compiler refuses."""
        raise NotImplementedError("define a fixture `broken`")

    @pytest.fixture(scope="module")
    @classmethod
    def device(cls, backend: Backend) -> Device:
        """The backend's first device."""
        return backend.open_device(0)

    @pytest.fixture(scope="module")
    @classmethod
    def binary(cls, backend: Backend, source: str, device: Device) -> Binary:
        """The source, compiled."""
        return backend.open_compiler(0).compile(source, ())

    def test_the_description_is_complete_and_stable(self, backend: Backend, device: Device) -> None:
        info = device.info
        assert info == backend.list_devices()[0]
        assert info.kind in ("cpu", "gpu") and info.slug == info.slug.lower()
        assert min(info.compute_units, info.warp_size, info.max_threads_per_block, info.memory_bytes) > 0
        assert info.driver and info.runtime

    def test_memory_keeps_what_is_written_and_regions_are_parts_of_it(self, device: Device) -> None:
        data = np.arange(16_384, dtype=np.uint8)
        buffer, second = device.allocate(data.size), device.allocate(data.size)
        device.write(buffer, data)
        part = device.region(buffer, 4096, 100)
        assert np.array_equal(device.read(part, 100), data[4096:4196])
        device.write(part, np.broadcast_to(np.uint8(7), 100))
        device.copy(second, buffer, data.size)
        seen = device.read(second, data.size)
        assert (seen[4096:4196] == 7).all() and np.array_equal(seen[4196:], data[4196:])
        device.copy(second, buffer, 3, (1, 4194))
        assert device.read(second, 5).tolist() == [0, 7, 7, 100, 4]
        device.copy(second, buffer, 8195, (3, 5))  # no multiple of a page
        assert np.array_equal(device.read(second, 8199)[3:8198], device.read(buffer, 8200)[5:])

    def test_a_clock_that_it_cannot_have_is_refused(self, device: Device) -> None:
        with pytest.raises(LaunchError):
            device.clocks.apply((("sm_clock_mhz", 1),))
        device.clocks.restore()

    @pytest.mark.parametrize("item_bytes", [1, 2, 4, 6, 8, 16])
    def test_elements_are_gathered(self, device: Device, item_bytes: int) -> None:
        data = np.random.default_rng(0).integers(0, 256, (5000, item_bytes), np.uint8)
        indices = np.array([0, 3, 3, 700, 4999])
        buffer = device.allocate(data.nbytes)
        device.write(buffer, data.reshape(-1))
        for chosen in (indices, indices[:2], np.arange(5000), indices[:0]):
            gathered = device.gather(buffer, chosen, item_bytes)
            assert np.array_equal(gathered, data[chosen].reshape(-1))

    def test_more_memory_than_there_is_is_refused_and_the_device_goes_on(self, device: Device) -> None:
        with pytest.raises(OutOfMemory):
            device.allocate(2**50)
        device.forget()
        assert device.read(device.allocate(4), 4).size == 4

    def test_a_launch_computes_and_takes_time(self, device: Device, binary: Binary) -> None:
        x = np.arange(1000, dtype=np.int32)
        source, target = device.allocate(x.nbytes), device.allocate(x.nbytes)
        device.write(source, x.view(np.uint8))
        program = device.load(binary)
        arguments = {"x": source, "y": target, "n": np.int32(1000)}
        one_ms = min(device.run(program, [launch()], arguments) for _ in range(3))
        assert np.array_equal(device.read(target, x.nbytes).view(np.int32), 2 * x)
        assert one_ms > 0
        assert device.run(program, [launch(), launch()], arguments, repeats=50) > one_ms

    def test_programs_take_turns_on_other_memory_and_go(self, device: Device, binary: Binary) -> None:
        for number in range(20):
            programs = [device.load(binary) for _ in range(2)]
            x = np.arange(number, number + 1000, dtype=np.int32)
            source, *targets = (device.allocate(x.nbytes) for _ in range(3))
            device.write(source, x.view(np.uint8))
            for program, target in (*zip(programs, targets, strict=True),) * 2:
                device.write(target, np.zeros(x.nbytes, np.uint8))
                device.run(program, [launch(), launch()], {"x": source, "y": target, "n": np.int32(1000)})
                assert np.array_equal(device.read(target, x.nbytes).view(np.int32), 2 * x)

    def test_arrays_are_compared_where_they_are(self, device: Device) -> None:
        wanted = np.arange(100_000, dtype=np.float32)
        result = wanted.copy()
        result[[70, 99_999]] += 0.5
        left, right = device.allocate(wanted.nbytes), device.allocate(wanted.nbytes)
        device.write(left, result.view(np.uint8))
        device.write(right, wanted.view(np.uint8))
        pair = ArrayComparison(left, right, "float32", 100_000)
        by_one = Tolerance(atol=1)
        sizes = np.zeros(100_000, np.float32)  # of the numbers behind each element
        sizes[99_999] = 2
        magnitude = device.allocate(sizes.nbytes)
        device.write(magnitude, sizes.view(np.uint8))
        by_size = replace(pair, tolerance=Tolerance(factor=0.5), magnitude=magnitude)
        cases = [
            (replace(pair, count=70), None),
            (by_size, (70, 1)),
            (replace(by_size, tolerance=Tolerance(1e-9, factor=0.2)), (70, 2)),
            (pair, (70, 2)),
            (replace(pair, tolerance=Tolerance(1e-3)), (70, 1)),
            (replace(pair, tolerance=by_one), None),
            (replace(pair, dtype="uint8", count=280), None),
            (replace(pair, tolerance=by_one, ends=70), (99_999, 1)),
            (replace(pair, tolerance=by_one, ends=71), (70, 2)),
            (replace(pair, ends=71, inside=False), (70, 2)),
            (replace(pair, ends=70, inside=False), (99_999, 1)),
        ]
        assert device.compare([comparison for comparison, _ in cases]) == [verdict for _, verdict in cases]
        assert device.compare([]) == []

    @pytest.mark.parametrize(("found", "wanted"), [(np.nan, np.nan), (np.inf, 1.0), (1.0, np.inf)])
    def test_nan_and_lone_infinities_never_agree(self, device: Device, found: float, wanted: float) -> None:
        left, right = device.allocate(8), device.allocate(8)
        device.write(left, np.array([found]).view(np.uint8))
        device.write(right, np.array([wanted]).view(np.uint8))
        assert device.compare([ArrayComparison(left, right, "float64", 1, Tolerance(1, 1))]) == [(0, 1)]

    @pytest.mark.parametrize("inside", [True, False])
    def test_nan_in_a_guard_zone_is_as_it_should_be(self, device: Device, inside: bool) -> None:
        zones = np.array([np.nan, np.inf, 5, 1, -np.inf, np.nan])
        damaged = zones.copy()
        damaged[5] = -np.inf
        buffers = [device.allocate(zones.nbytes) for _ in range(3)]
        for buffer, content in zip(buffers, (zones, zones, damaged), strict=True):
            device.write(buffer, content.view(np.uint8))
        expected, whole, broken = buffers
        pairs = [
            ArrayComparison(zone, expected, "float64", 6, Tolerance(1), ends=2, inside=inside)
            for zone in (whole, broken)
        ]
        assert device.compare(pairs) == [None, (5, 1)]

    def test_the_binary_says_what_it_is(self, binary: Binary) -> None:
        assert len(bytes.fromhex(binary.sha256)) == hashlib.sha256().digest_size and binary.compile_ms > 0

    def test_a_source_that_does_not_compile_is_a_compile_error_with_a_log(
        self, backend: Backend, broken: str
    ) -> None:
        with pytest.raises(CompileError) as error:
            backend.open_compiler(0).compile(broken, ())
        assert str(error.value).strip()

    @pytest.mark.parametrize(
        ("refused", "message"),
        [(launch("thrice"), "thrice"), (launch(block=1_000_000), ".")],
        ids=["unknown entry", "block too large"],
    )
    def test_a_launch_that_is_refused_is_a_launch_error_and_the_device_goes_on(
        self, device: Device, binary: Binary, refused: Launch, message: str
    ) -> None:
        program = device.load(binary)
        x = device.allocate(4000)
        arguments = {"x": x, "y": x, "n": np.int32(10)}
        with pytest.raises(LaunchError, match=message):
            device.run(program, [refused], arguments)
        assert device.run(program, [launch()], arguments) >= 0

    def test_the_cache_can_be_flushed_twice(self, device: Device) -> None:
        if device.info.cache_bytes > 2**28:
            pytest.skip("the last-level cache that this machine reports is too large to flush in a test")
        device.flush_cache()
        device.flush_cache()
