"""Triton spaces compile for AMD GPUs that are not here, fit, or are refused for the right reason."""

import re
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="needs the extra triton")

from autotune.analysis.compile_survey import Settings, survey
from autotune.compilers.amd_metadata import read_kernel
from autotune.compilers.known_compilers import cuda_compiler
from autotune.compilers.occupancy import occupancy
from autotune.compilers.triton_binary import unpack
from autotune.core.launch_plan import TRITON
from autotune.core.trials import Status
from autotune.errors import CompileError, InputError, LaunchError
from autotune.hardware.architectures import ARCHITECTURES, architecture
from autotune.space import load_space
from autotune.tuning.task import Target
from tests.sampled_configurations import sampled

SPACES = Path(__file__).parents[2] / "spaces"
FILES = sorted(SPACES.glob("triton_*.yaml"))
NAMES = [name for name, item in ARCHITECTURES.items() if item.is_amd]
LONGEST_S = 60
COPY = """\
import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def transposed(x):
    tile = x + tl.arange(0, 256)[:, None] * 256 + tl.arange(0, 256)[None, :]
    tl.store(tile, tl.load(tile).T)
"""


def compiled(name, entry):
    (kernel,) = unpack(cuda_compiler(name, TRITON).compile(COPY, (), (entry,))).values()
    return kernel


@pytest.mark.parametrize(("name", "warp"), [("gfx942", 64), ("gfx950", 64), ("gfx1100", 32), ("gfx1201", 32)])
def test_registers_and_the_size_of_a_warp_are_those_of_the_architecture(name, warp):
    kernel = compiled(name, "copy('*fp32:16', '*fp32:16', 'i32:16', BLOCK=1024, num_warps=4)")
    used = kernel.resources
    assert (kernel.warp_size, kernel.warps, kernel.cubin[:4]) == (warp, 4, b"\x7fELF")
    assert 4 <= used.registers <= 64 and 4 <= used.scalar_registers <= 108 and used.spill_bytes == 0
    assert used.max_threads == 4 * warp and used.accumulation_registers == 0


def test_occupancy_by_registers_is_that_of_the_compiler():
    """LLVM writes it into the assembly; shared memory, which Triton allocates later, does not count there."""
    from triton.backends.amd import compiler as amd

    place, said = architecture("gfx942"), []
    original = amd.compile_amdgpu
    for waves in (0, 2, 4, 8):
        texts = []
        amd.compile_amdgpu = lambda *args, into=texts, **kw: into.append(original(*args, **kw)) or into[-1]
        try:
            entry = f"copy('*fp32:16', '*fp32:16', 'i32:16', BLOCK=32768, num_warps=4, waves_per_eu={waves})"
            cuda_compiler("gfx942", TRITON).compile(COPY, (), (entry,))
        finally:
            amd.compile_amdgpu = original
        used, _ = read_kernel(texts[0])
        found = occupancy(place, 256, used.registers, 0, used.scalar_registers)
        llvm = int(re.search(r"; Occupancy: (\d+)", texts[0])[1])
        assert min(waves or 8, found.warps // 4) == llvm
        said.append(llvm)
    assert len(set(said)) > 1


@pytest.mark.parametrize("name", NAMES)
def test_too_much_shared_memory_is_refused_although_the_compiler_accepts_it(name):
    limit = 163_840 if name == "gfx950" else 65_536
    with pytest.raises(LaunchError, match=rf"\(LDS\): 262,\d+ bytes in a block, at most {limit:,}"):
        compiled(name, "transposed('*fp32:16', num_warps=16)")


@pytest.mark.parametrize(
    ("name", "option", "reason"),
    [
        ("gfx942", "waves_per_eu=9", "waves_per_eu=9: gfx942 takes 0, 1, 2, 3, 4, 5, 6, 7, 8"),
        ("gfx1100", "matrix_instr_nonkdim=32", "matrix_instr_nonkdim=32: gfx1100 takes 0, 16"),
        ("gfx950", "kpack=2", "kpack=2: gfx950 takes 1"),
        ("gfx942", "maxnreg=64", "maxnreg=64 is an option for NVIDIA's GPUs"),
        (
            "sm_90",
            "waves_per_eu=2",
            "waves_per_eu=2 is an option for AMD's GPUs; NVIDIA's take only waves_per_eu=0",
        ),
        ("gfx942", "num_ctas=2", "num_ctas > 1 not supported on gfx942"),
    ],
)
def test_values_that_an_architecture_does_not_take_are_refused(name, option, reason):
    with pytest.raises(CompileError, match=re.escape(reason)):
        compiled(name, f"copy('*fp32:16', '*fp32:16', 'i32:16', BLOCK=64, {option})")


def test_options_that_change_nothing_are_taken_on_both_vendors_gpus():
    options = "maxnreg=255, waves_per_eu=0, matrix_instr_nonkdim=0, kpack=1"
    for name in ("sm_90", "gfx1201"):
        assert compiled(name, f"copy('*fp32:16', '*fp32:16', 'i32:16', BLOCK=64, {options})").resources


@pytest.mark.parametrize(
    ("name", "reason"), [("gfx942", "float8_e4m3fnuz"), ("gfx1100", "no float8"), ("gfx1201", "")]
)
def test_float8_is_refused_where_the_architecture_has_another_or_none(name, reason):
    entry = "copy('*fp8e4nv:16', '*fp8e4nv:16', 'i32:16', BLOCK=64)"
    if not reason:
        assert compiled(name, entry).resources
        return
    with pytest.raises(CompileError, match=f"no float8_e4m3fn on {name}: .*{reason}"):
        compiled(name, entry)


def test_constraints_for_the_shared_memory_of_nvidia_refuse_nothing_that_fits():
    """By its formula the configuration takes 98,304 bytes, on gfx942 it takes a third of the 64 KiB less."""
    config = load_space(FILES[-1].with_name("triton_matmul.yaml")).default
    config = type(config)({**config, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 3})
    target = Target(SPACES / "triton_matmul.yaml")
    (found,) = survey(target, [architecture("gfx942")], Settings(configs=(config,), compilers=1))
    assert found.failure == "" and found.checked[0].shared_bytes == 49_152


def test_variants_for_nvidia_and_other_dialects_say_why_they_are_refused():
    spec = load_space(SPACES / "triton_matmul.yaml")
    (special,) = (one.config for one in spec.landmarks if one.name == "specialized")
    target = Target(spec.path)
    (found,) = survey(target, [architecture("gfx942")], Settings(configs=(special,), compilers=1))
    assert "SPECIALIZED" in found.failure and "device.vendor" in found.failure
    with pytest.raises(InputError, match="expected a kernel in Triton for AMD's gfx942"):
        survey(Target(SPACES / "reduce.yaml"), [architecture("gfx942")], Settings())
    (float8,) = survey(
        Target(SPACES / "triton_matmul_float8.yaml"), [architecture("gfx942")], Settings(count=1)
    )
    assert "HAS_FLOAT8" in float8.note


def known_reason(item):
    """True if the hardware has no room, or the compiler took too long."""
    reason = "too much shared memory"
    has_no_room = item.failure.status is Status.LAUNCH_ERROR and item.failure.detail.startswith(reason)
    return has_no_room or item.failure.status is Status.COMPILE_TIMEOUT


@pytest.mark.wide
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_landmarks_and_every_pair_of_values_compile_and_fit_or_have_a_reason(path, name):
    spec, place = load_space(path), architecture(name)
    if not spec_is_possible(spec, place):
        (found,) = survey(Target(path), [place], Settings(count=1))
        assert "HAS_FLOAT8" in found.note
        return
    for part in sampled(spec, place.device):
        configs = tuple(dict.fromkeys((*part.known, *part.pairwise)))
        target = Target(path, None, {}, part.space.problem.dtype)
        (found,) = survey(target, [place], Settings(configs=configs, timeout_s=LONGEST_S, compilers=1))
        assert len(found.checked) == len(configs)
        bad = [item for item in found.checked if item.failure and not known_reason(item)]
        assert not bad, "\n".join(f"{item.config}: {item.failure}" for item in bad)
        assert all(item.occupancy.blocks for item in found.checked if not item.failure)


def spec_is_possible(spec, place):
    return not (spec.kernel == "triton_matmul_float8" and place.name in ("gfx942", "gfx1100"))
