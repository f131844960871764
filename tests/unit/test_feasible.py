"""A space is judged for architectures that are not there: what compiles, what fits, and why not."""

import json

import pytest

from autotune.analysis.compile_survey import Settings, survey
from autotune.core.records import Config
from autotune.core.trials import Status
from autotune.hardware.architectures import architecture
from autotune.tuning.task import Target

KERNEL = """
extern "C" __global__ void scale(float* x, int n) {
    extern __shared__ float room[];
#if BROKEN
    x[0] = nothing;
#endif
    room[threadIdx.x] = 2;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= room[0];
}
"""
SPACE = """
schema: 1
kernel: scale
dialect: cuda
source: scale.cu
reference: reference.py
sizes:
  default: {n: 1000}
dtypes: [float32]
parameters:
  BLOCK_SIZE: [128, 1024, 2048]
  SHARED_KIB: [8, 64, 200]
  BROKEN: [false, true]
  RANK: [1, 2]
constraints:
  - not BROKEN or BLOCK_SIZE == 128
  - device.compute_units > 50 or SHARED_KIB > 8
default: {BLOCK_SIZE: 128, SHARED_KIB: 64, BROKEN: false, RANK: 1}
arguments:
  - {name: x, dtype: float32, shape: [n], role: inout, fill: {integers: [-100, 100]}}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: scale, grid: ["ceil_div(n, BLOCK_SIZE)"], block: [BLOCK_SIZE],
     shared_bytes: SHARED_KIB * 1024, arguments: [x, n], when: RANK == 1}
  - {entry: scale_2, grid: [1], block: [BLOCK_SIZE], arguments: [x, n], when: RANK == 2}
"""


@pytest.fixture
def space(tmp_path):
    (tmp_path / "scale.cu").write_text(KERNEL)
    (tmp_path / "reference.py").touch()
    path = tmp_path / "scale.yaml"
    path.write_text(SPACE)
    return path


def look(space, *names, **settings):
    seen = []
    found = survey(Target(space), [architecture(name) for name in names], Settings(**settings), seen.append)
    return found, [str(stage) for stage in seen]


def outcome(found, **config):
    wanted = {"BLOCK_SIZE": 128, "SHARED_KIB": 64, "BROKEN": False, "RANK": 1} | config
    (one,) = [item for item in found.checked if item.config == Config(wanted)]
    return one


def test_every_configuration_is_judged_by_the_limits_of_each_architecture(space, tmp_path):
    (turing, hopper), seen = look(space, "sm_75", "sm_90", compilers=2, binaries=tmp_path / "kept")
    # no block has 2048 threads; a T4 has 40 units, and with them no 8 KiB; nor does it have 200 KiB a block
    assert (turing.valid, hopper.valid) == (9, 18)
    assert seen == [
        f"compiling for {name} {n} of {of}"
        for name, of in (("sm_75", 9), ("sm_90", 18))
        for n in range(of + 1)
    ]
    good = outcome(hopper)
    assert good.failure is None and good.registers >= 8 and good.shared_bytes == 65_536
    assert (good.spill_bytes, good.local_bytes) == (0, 0)
    assert (good.occupancy.blocks, good.occupancy.limit) == (3, "shared memory")
    assert outcome(turing).occupancy.blocks == 1
    assert outcome(hopper, SHARED_KIB=200).failure is None
    missing = outcome(hopper, RANK=2).failure.detail
    assert missing.startswith("no such kernel or variable: scale_2 (") and missing.endswith("has scale")
    broken = outcome(hopper, BROKEN=True)
    assert broken.failure.status is Status.COMPILE_ERROR and "nothing" in broken.failure.detail
    assert broken.registers is None and broken.occupancy is None
    again, _ = look(space, "sm_90", compilers=1, binaries=tmp_path / "kept")
    assert [item.cached for item in again[0].checked] == [
        item.config["RANK"] == 1 and not item.config["BROKEN"] for item in hopper.checked
    ]


def test_a_sample_has_the_default_first_and_depends_on_the_seed(space):
    (first,), _ = look(space, "sm_90", count=6, seed=1, compilers=1)
    (same,), _ = look(space, "sm_90", count=6, seed=1, compilers=1)
    (other,), _ = look(space, "sm_90", count=6, seed=2, compilers=1)
    configs = [[item.config for item in found.checked] for found in (first, same, other)]
    assert configs[0] == configs[1] != configs[2]
    assert len(set(configs[0])) == 6 and configs[0][0] == configs[2][0] == outcome(first).config


def test_those_that_are_asked_for_are_checked_with_a_further_option(space):
    values = {"BLOCK_SIZE": 128, "SHARED_KIB": 8, "BROKEN": False, "RANK": 1}
    good, large = Config(values), Config({**values, "SHARED_KIB": 200})
    turing, hopper = look(space, "sm_75", "sm_90", configs=(large, good), compilers=1)[0]
    assert [item.config for item in hopper.checked] == [large, good] and hopper.failure == ""
    assert turing.checked == () and turing.failure  # too much for a T4, and what a constraint forbids
    (broken,), _ = look(space, "sm_90", configs=(good,), options=("--no-such-option",), compilers=1)
    assert "no-such-option" in broken.failure


def test_the_command_shows_a_table_and_every_reason(folder, space):
    command = ("space", space, "--compile", "--device", "sm_75,sm_90", "--budget", "all", "--compilers", "1")
    done = folder.run(*command)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1].split()[:7] == ["sm_75", "NVIDIA", "T4", "(40", "units)", "9", "9"]
    assert "no such kernel or variable:" in done.stdout and 'identifier "nothing" is undefined' in done.stdout
    whole = json.loads(folder.run(*command, "--json").stdout)
    hopper = whole[1]
    assert (hopper["architecture"], hopper["valid"], hopper["tried"]) == ("sm_90", 18, 18)
    assert hopper["compile"] == hopper["can_launch"] == 6
    assert hopper["compiled_before"] == 6  # by the first command
    fresh = (*command[:3], "--device", "sm_90", "--budget", "2", "--json", "--no-binary-cache")
    (anew,) = json.loads(folder.run(*fresh).stdout)
    assert anew["compiled_before"] == 0
    first, known = anew["configurations"][0], hopper["configurations"][0]
    assert first["compile_ms"] > known["compile_ms"] == 0
    assert first == known | {"cached": False, "compile_ms": first["compile_ms"]}
    states = {row["status"] for row in hopper["configurations"]}
    assert states == {"ok", "compile_error"}


def test_a_default_that_cannot_run_is_a_failure(folder, space):
    space.write_text(SPACE.replace("default: {BLOCK_SIZE: 128", "default: {BLOCK_SIZE: 2048"))
    done = folder.run("space", space, "--compile", "--device", "sm_90", "--budget", "1")
    assert done.returncode == 1
    assert "cannot run on sm_90: " in done.stderr and "BLOCK_SIZE=2048" in done.stderr


def test_one_configuration_is_compiled_for_a_gpu_by_its_name(folder, space):
    command = (
        "space",
        space,
        "--compile",
        "--device",
        "NVIDIA H200, sm_75",
        "--json",
        "--config",
        "BLOCK_SIZE=128",
    )
    h200, turing = json.loads(folder.run(*command, "--compilers", "1").stdout)
    assert (h200["architecture"], h200["as_on"]["name"], h200["tried"]) == ("sm_90", "NVIDIA H200", 1)
    assert h200["configurations"][0]["config"]["BLOCK_SIZE"] == 128
    assert turing["as_on"]["name"] == "NVIDIA T4" and turing["tried"] == 1
    done = folder.run(*command[:5], "--config", "SHARED_KIB=200,BLOCK_SIZE=1024", "--compilers", "1")
    assert done.returncode == 1 and "SHARED_KIB=200" in done.stderr and "cannot run on sm_75: " in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--config", "BLOCK_SIZ=128"], "unknown parameter; did you mean BLOCK_SIZE?"),
        (["--device", "sm_42"], "unknown architecture 'sm_42'; expected one of sm_75"),
        (["--device", "NVIDIA X9"], "unknown architecture 'NVIDIA X9'; expected one of sm_75"),
        (["--budget", "0"], "expected a whole number of at least 1"),
        (["--size", "m=1"], "unknown size 'm'"),
    ],
)
def test_bad_input_is_answered_in_one_line(folder, space, options, message):
    done = folder.run("space", space, "--compile", *options)
    assert done.returncode == 2 and message in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_space_for_another_language_is_refused(folder):
    done = folder.run("space", "double.yaml", "--compile")
    assert done.returncode == 2 and "expected a kernel for CUDA, found dialect 'python'" in done.stderr


def test_an_architecture_without_a_valid_configuration_says_so(folder, space):
    space.write_text(
        SPACE.replace("device.compute_units > 50 or SHARED_KIB > 8", "device.compute_units > 50")
    )
    done = folder.run("space", space, "--compile", "--device", "sm_75,sm_90", "--budget", "1")
    assert done.returncode == 0, done.stderr
    assert "no configuration is valid on NVIDIA T4: nothing satisfies" in done.stdout


def test_a_parameter_that_changes_nothing_of_what_was_compiled_is_named(folder, space):
    """SPARE is in no source and no launch; BLOCK_SIZE changes launches alone, which counts."""
    text = SPACE.replace("RANK: [1, 2]", "RANK: [1]\n  SPARE: [1, 2, 3]").replace(
        "RANK: 1}", "RANK: 1, SPARE: 1}"
    )
    space.write_text(text.replace("[false, true]", "[false]"))
    command = ("space", space, "--compile", "--device", "sm_75,sm_90", "--compilers", "1")
    done = folder.run(*command, "--budget", "all")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "SPARE changes no binary on sm_75: 2 binaries for 6 configurations" in lines
    assert "SPARE changes no binary on sm_90: 6 binaries for 18 configurations" in lines
    assert sum("changes no binary" in line for line in lines) == 2
    few = folder.run(*command, "--config", "SPARE=2")
    assert few.returncode == 0 and "changes no binary" not in few.stdout


def test_the_configuration_that_spills_most_is_named(folder, space):
    values = "float v[64]; for (int k = 0; k < 64; k++) v[k] = x[k * n];\n    __syncthreads();\n"
    used = "    for (int k = 0; k < 64; k++) x[k * n] = v[63 - k];\n"
    space.with_name("scale.cu").write_text(KERNEL.replace("int i =", f"{values}{used}    int i ="))
    text = SPACE.replace("RANK: [1, 2]", "RANK: [1]\n  MOST: [24, 32, 255]").replace(
        "RANK: 1}", "RANK: 1, MOST: 32}"
    )
    space.write_text(
        text.replace("[false, true]", "[false]").replace("[128, 1024, 2048]", "[128]")
        + "compiler_options:\n  cuda: {--maxrregcount: MOST}\n"
    )
    command = ("space", space, "--compile", "--device", "sm_90", "--compilers", "1")
    done = folder.run(*command, "--budget", "all")
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if "spills most" in line)
    assert line.startswith("sm_90: ") and "MOST=24 spills most, " in line and line.endswith(" bytes a thread")
    few = folder.run(*command, "--config", "MOST=255")
    assert few.returncode == 0 and "spills most" not in few.stdout
