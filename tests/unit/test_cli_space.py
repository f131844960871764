"""`autotune space` for GPUs that are not here, and what it says of single configurations and types."""

import json

import pytest

from autotune.hardware.names import known_gpu

CUDA = """\
__global__ void double_(const int *x, int *y, int n)
{
}
"""


def cuda_space(folder):
    """The folder's space for a kernel in CUDA C++."""
    (folder.path / "double.cu").write_text(CUDA)
    folder.edit("dialect: python", "dialect: cuda")
    folder.edit("source: double.py", "source: double.cu")
    folder.edit("entry: double,", "entry: double_,")
    folder.edit("A + B <= 7", 'A + B <= 7 and device.architecture == "sm_90"')


@pytest.mark.parametrize("device", ["NVIDIA H200", "sm_90", "h100"])
def test_a_gpu_that_is_not_here_is_counted_with_its_known_limits(folder, device):
    cuda_space(folder)
    done = folder.run("space", "double.yaml", "--device", device)
    assert done.returncode == 0, done.stderr
    assert "this machine has no such device: counted with the known limits of sm_90" in done.stdout
    assert "17 valid of 18 combinations" in done.stdout and "unused_parameter" in done.stdout
    counted = json.loads(folder.run("space", "double.yaml", "--device", device, "--json").stdout)
    assert counted["valid"] == 17


def test_a_space_for_nvidia_gpus_needs_no_name_where_none_is_here(folder, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    cuda_space(folder)
    done = folder.run("space", "double.yaml")
    assert done.returncode == 0 and "counted with the known limits of sm_90" in done.stdout


def test_a_space_without_constraints_has_no_empty_table(folder):
    folder.write("def double(grid, block, x, y, n):\n    return A + B\n")
    folder.edit("constraints:\n  - A + B <= 7\n", "")
    said = folder.run("space", "double.yaml", "--device", "fake").stdout
    assert "no findings" in said and "\n\n\n" not in said


def test_sizes_that_are_left_out_are_told_in_one_line(folder):
    cuda_space(folder)
    loop = "    for (int k = threadIdx.x; k < n * 100000; k++)\n        y[k % n] = k;\n"
    (folder.path / "double.cu").write_text(CUDA.replace("{\n", f"{{\n{loop}"))
    command = ("space", "double.yaml", "--device", "sm_90")
    (line,) = [one for one in folder.run(*command).stdout.split("\n") if one.startswith("not checked: ")]
    left_out = json.loads(folder.run(*command, "--json").stdout)["left_out"]
    assert line == (
        "not checked: accesses of threads at n=1, n=17, n=1,000, which take too long to "
        "follow; a search runs the kernel at these sizes"
    )
    assert left_out == [{"n": 1}, {"n": 17}, {"n": 1000}]


def test_without_a_device_the_error_says_that_a_name_is_enough(folder):
    cuda_space(folder)
    for device in ("fake", "sm_99", "NVIDIA H999"):
        done = folder.run("space", "double.yaml", "--device", device)
        assert done.returncode == 2 and "its architecture: sm_75, sm_80, sm_86, " in done.stderr


def test_only_the_count_takes_a_gpu_that_is_not_here(folder):
    cuda_space(folder)
    assert folder.run("search", "double.yaml", "--device", "sm_86").returncode == 2


def test_an_unknown_name_is_no_gpu():
    assert known_gpu("warp drive") is None and known_gpu("sm_1") is None
    assert known_gpu("nvidia h200").slug == "nvidia-h200" and known_gpu("SM_90").name == "NVIDIA H100"


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_an_invalid_configuration_exits_with_1(folder, as_json):
    command = ("space", "double.yaml", "--device", "fake", *as_json, "--config")
    assert folder.run(*command, "A=6,B=2").returncode == 1
    assert folder.run(*command, "A=5,B=2").returncode == 0


def test_a_type_that_the_space_does_not_have_is_named_with_those_it_has(folder):
    done = folder.run("space", "double.yaml", "--device", "fake", "--dtype", "float64")
    assert done.returncode == 2 and "dtype float64 is not among the space's dtypes: int32" in done.stderr
    done = folder.run("space", "double.yaml", "--device", "fake", "--dtype", "flot32")
    assert done.returncode == 2 and "the space's dtypes are int32; did you mean float32?" in done.stderr
