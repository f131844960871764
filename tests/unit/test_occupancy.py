"""Occupancy against NVIDIA's own worked examples and the limits of each architecture."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.cli.device_use import COLUMNS, use_of
from autotune.cli.run import ladder_table, run_text
from autotune.cli.show import TrialRow, trials_table
from autotune.compilers.occupancy import bytes_to_add, occupancy, why_refused
from autotune.core.records import Launch
from autotune.core.trials import Failure, Measurement, Rule, Status, Trial
from autotune.errors import InputError
from autotune.hardware.architectures import ARCHITECTURES, architecture
from autotune.space import bind, load_space, problem_of

H100, T4, L4 = (architecture(name) for name in ("sm_90", "sm_75", "sm_89"))


def launch(block=(256, 1, 1), grid=(1, 1, 1), shared_bytes=0):
    return Launch("kernel", grid, block, shared_bytes, ())


@pytest.mark.parametrize(
    ("where", "threads", "registers", "shared_bytes", "blocks", "share", "limit"),
    [
        # CUDA C++ Best Practices Guide, "Calculating Occupancy": 64 warps, 37 registers
        (H100, 128, 37, 0, 12, 0.75, "registers"),
        (H100, 320, 37, 0, 4, 0.625, "registers"),
        # 32 registers are the most that leave room for 2048 threads; one more is as bad as eight more
        (H100, 256, 32, 0, 8, 1.0, "warps"),
        (H100, 256, 33, 0, 6, 0.75, "registers"),
        (H100, 256, 40, 0, 6, 0.75, "registers"),
        (H100, 1024, 64, 0, 1, 0.5, "registers"),
        (H100, 32, 16, 0, 32, 0.5, "blocks"),
        # 1 KiB of every block is the system's from Ampere on: 227 KiB are one block's, 113 KiB two's
        (H100, 128, 16, 227 * 1024, 1, 4 / 64, "shared memory"),
        (H100, 128, 16, 113 * 1024, 2, 8 / 64, "shared memory"),
        (H100, 128, 16, 113 * 1024 + 1, 1, 4 / 64, "shared memory"),
        (T4, 128, 16, 32 * 1024, 2, 8 / 32, "shared memory"),
        (T4, 128, 16, 32 * 1024 + 1, 1, 4 / 32, "shared memory"),
        (T4, 256, 64, 0, 4, 1.0, "warps"),
        (L4, 1024, 32, 0, 1, 32 / 48, "warps"),
        (L4, 33, 16, 0, 24, 1.0, "warps"),  # two warps for 33 threads
    ],
)
def test_published_occupancies(where, threads, registers, shared_bytes, blocks, share, limit):
    found = occupancy(where, threads, registers, shared_bytes)
    assert (found.blocks, found.share, found.limit) == (blocks, pytest.approx(share), limit)


@pytest.mark.parametrize(
    ("plan", "registers", "shared_bytes", "max_threads", "reason"),
    [
        (launch((1024, 1, 1)), 64, 0, None, None),
        (launch((1024, 1, 1)), 65, 0, None, "too many registers: 1024 threads of 65 each take 73,728"),
        (launch((32, 1, 1)), 255, 0, None, None),
        (launch((1025, 1, 1)), 8, 0, None, "block too large: 1025x1x1"),
        (launch((1, 1, 65)), 8, 0, None, "block too large: 1x1x65"),
        (launch(grid=(2**31 - 1, 65_535, 1)), 8, 0, None, None),
        (launch(grid=(1, 65_536, 1)), 8, 0, None, "grid too large: 1x65536x1"),
        (launch((256, 1, 1)), 8, 0, 256, None),
        (launch((257, 1, 1)), 8, 0, 256, "more threads than __launch_bounds__: 257"),
        (launch(shared_bytes=227 * 1024), 8, 0, None, None),
        (launch(shared_bytes=227 * 1024), 8, 4, None, "too much shared memory: 232,452 bytes"),
    ],
)
def test_refused_launches_have_a_reason(plan, registers, shared_bytes, max_threads, reason):
    found = why_refused(H100, plan, registers, shared_bytes, max_threads)
    assert found == reason if reason is None else found.startswith(reason)


@given(
    st.sampled_from(list(ARCHITECTURES.values())),
    st.integers(1, 1024),
    st.integers(1, 255),
    st.integers(0, 250_000),
)
def test_occupancy_never_grows_with_resources(where, threads, registers, shared):
    plan = launch((threads, 1, 1))
    found = occupancy(where, threads, registers, shared)
    if why_refused(where, plan, registers, shared, None) is None:
        assert found.blocks >= 1 and 0 < found.share <= 1
    assert occupancy(where, threads, min(255, registers + 1), shared).blocks <= found.blocks
    assert occupancy(where, threads, registers, shared + 1).blocks <= found.blocks


def test_an_unknown_architecture_lists_the_known_ones():
    with pytest.raises(InputError, match="unknown architecture 'sm_42'; expected one of sm_75, sm_80"):
        architecture("sm_42")


@pytest.mark.parametrize("name", ["gfx942", "gfx950"])
@pytest.mark.parametrize(
    ("waves", "fewest", "most"),
    # LLVM's table for gfx90a and gfx940, by AMD: waves of a SIMD by the VGPRs of a kernel, AGPRs included
    [
        (8, 1, 64),
        (7, 65, 72),
        (6, 73, 80),
        (5, 81, 96),
        (4, 97, 128),
        (3, 129, 168),
        (2, 169, 256),
        (1, 257, 512),
    ],
)
def test_published_waves_by_registers_of_cdna(name, waves, fewest, most):
    for registers in (fewest, most):
        assert occupancy(architecture(name), 256, registers, 0).warps == 4 * waves


@pytest.mark.parametrize("name", ["gfx1100", "gfx1201"])
@pytest.mark.parametrize(
    ("registers", "waves"),
    # LLVM's tests of occupancy for gfx1100 and gfx1200 with 32 threads in a wave
    [(24, 16), (96, 16), (100, 12), (112, 12), (128, 10), (144, 10), (168, 9), (200, 7), (256, 5)],
)
def test_published_waves_by_registers_of_rdna(name, registers, waves):
    found = occupancy(architecture(name), 128, registers, 0)
    assert (found.warps, found.share) == (4 * waves, waves / 16)


@pytest.mark.parametrize(
    ("threads", "registers", "shared_bytes", "scalar_registers", "share", "limit"),
    [
        # AMD's example of limiters, measured: 49.92% with 122 VGPRs, which take 128, and 12.49% with 64 KiB
        (256, 128, 0, 80, 0.5, "registers"),
        (256, 96, 65_536, 80, 0.125, "shared memory"),
        # the example of llvm-calc-occupancy: nothing limits
        (512, 50, 0, 30, 1.0, "warps"),
        # LLVM's tests with ROCm's trap handler: 7 waves with 80 numbered SGPRs and 6 more, 6 with 100
        (256, 32, 0, 86, 7 / 8, "scalar registers"),
        (256, 32, 0, 106, 6 / 8, "scalar registers"),
        # 16 workgroups have a barrier; those of one wave need none
        (128, 16, 0, 16, 1.0, "warps"),
        (64, 16, 0, 16, 1.0, "warps"),
    ],
)
def test_published_occupancies_of_cdna(threads, registers, shared_bytes, scalar_registers, share, limit):
    found = occupancy(architecture("gfx942"), threads, registers, shared_bytes, scalar_registers)
    assert (found.share, found.limit) == (pytest.approx(share), limit)


def test_shared_memory_of_a_block_follows_from_the_multiprocessor():
    assert {name: item.device.shared_bytes_per_block // 1024 for name, item in ARCHITECTURES.items()} == {
        **{"sm_75": 64, "sm_80": 163, "sm_86": 99, "sm_87": 163},
        **{"sm_89": 99, "sm_90": 227, "sm_100": 227, "sm_120": 99},
        **{"gfx942": 64, "gfx950": 160, "gfx1100": 64, "gfx1201": 64},
    }
    assert all(item.device.architecture == name for name, item in ARCHITECTURES.items())


def test_ladder_and_trials_have_columns_for_the_use_of_the_device(root):
    spec = load_space(root / "spaces/reduce.yaml")
    device = architecture("sm_90").device
    space = bind(spec, device, problem_of(spec, device, {"n": 2**27}, "float32"))
    timed = Trial(spec.default, "k", measurement=Measurement((0.32,), Rule.STEADY), registers=64)
    failed = Trial(spec.default, "k", Failure(Status.CRASHED, "why"))
    landmarks = {"default": timed, "other": failed}
    drawn = ladder_table(space, landmarks)
    cells = dict(zip(drawn.columns, map(list, zip(*drawn.rows, strict=True)), strict=True))
    assert cells["occupancy"] == ["50%", "-"] and cells["limited by"][0] == "registers"
    assert cells["of peak"] == ["50%", "-"]  # 537 MB in 0.32 ms, of 3.35 TB/s
    shown = trials_table([TrialRow(Path("j.jsonl"), timed, use=use_of(space, timed))])
    assert [*shown.columns][-4:] == [*COLUMNS, "detail"]
    assert "occupancy  50%" in run_text(space, [timed], "x") and "50% of the device's peak" in run_text(
        space, [timed], "x"
    )


def test_shared_memory_is_added_until_so_many_blocks_are_resident():
    where = ARCHITECTURES["sm_90"]
    for blocks in (1, 2, 5, 7):
        extra = bytes_to_add(where, 256, 32, 1000, blocks)
        assert occupancy(where, 256, 32, 1000 + extra).blocks == blocks
    assert bytes_to_add(where, 256, 32, 1000, 8 + 1) is None  # more than its warps allow
