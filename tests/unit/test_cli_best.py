"""What `autotune best` prints, and for which devices."""

import json
import re
from dataclasses import replace

import pytest

from autotune import include_dir
from tests.cache_example import DEVICE, entry, record
from tests.cache_files import write

HOPPER = replace(DEVICE, name="NVIDIA H200", slug="nvidia-h200", vendor="NVIDIA", architecture="sm_90")


@pytest.fixture
def best(folder):
    """Run the command in a folder whose cache has results of one GPU for two sizes."""
    write(folder.path / "cache", HOPPER, record(entry(64, BLOCK=32), entry(1024, BLOCK=128)))
    return lambda *arguments: folder.run("best", "reduce", *arguments)


def test_a_gpu_that_nothing_is_known_of_is_answered_by_its_name(best):
    done = best("--device", "NVIDIA H100 PCIe", "--size", "n=64", "--json")
    found = json.loads(done.stdout)
    assert (found["match"]["tier"], found["match"]["source_device"]) == ("same_architecture", "nvidia-h200")
    assert found["expected_slowdown"] is found["slowdown_at_most"] is None and found["config"]["BLOCK"] == 32
    done = best("--device", "NVIDIA H100 PCIe", "--size", "n=64")
    assert (
        done.stdout.endswith(
            "expected slowdown: unknown; `autotune search` for this device and size finds the best\n"
        )
        and "-D" not in done.stdout
    )
    done = best("--device", "NVIDIA H100 PCIe", "--size", "n=64", "--flags")
    assert done.stdout.startswith(f"-I{include_dir()} -DDTYPE=") and done.stdout.endswith("-DUNROLL=0\n")
    assert done.stderr.startswith("warning: same_architecture: tuned on nvidia-h200"), done.stderr


def test_an_architecture_is_answered_as_a_gpu_of_it_that_has_no_results(best):
    done = best("--device", "sm_90", "--size", "n=64")
    assert "same_architecture: tuned on nvidia-h200" in done.stdout and "not checked" not in done.stdout
    done = best("--device", "sm_91", "--size", "n=64")
    assert done.returncode == 2 and "unknown device 'sm_91'" in done.stderr
    assert "fake" not in done.stderr.lower()


def test_an_exact_answer_expects_no_slowdown(best):
    done = best("--device", "nvidia-h200", "--size", "n=64")
    assert "exact: tuned on nvidia-h200 for n=64 (" in done.stdout
    assert "slowdown" not in done.stdout


def test_flags_that_were_not_tuned_for_the_device_are_told_next_to_them(best):
    done = best("--device", "AMD Radeon", "--size", "n=64", "--flags")
    assert done.returncode == 0 and done.stderr.startswith("warning: portable: "), done.stderr
    assert "--min-match" in done.stderr
    for sizes in ("n=64", "n=80"):
        assert not best("--device", "nvidia-h200", "--size", sizes, "--flags").stderr


def test_a_loose_match_is_refused_with_what_there_is(best):
    arguments = ("--device", "NVIDIA H100 PCIe", "--size", "n=64", "--min-match")
    assert best(*arguments, "same_architecture").returncode == 0
    done = best(*arguments, "nearest_size")
    assert done.returncode != 0 and "nothing as close as nearest_size for nvidia-h100-pcie" in done.stderr
    done = best(*arguments, "near")
    assert done.returncode == 2 and "did you mean nearest_size?" in done.stderr


def test_a_kernel_without_results_is_told_how_to_get_its_default_alone(folder):
    refused = folder.run("best", "double")
    assert refused.returncode == 1
    (command,) = re.findall(r"tune it with: autotune (.*?) \((--budget 1) stores its default", refused.stderr)
    folder.search(*" ".join(command).split()[2:])
    assert folder.run("best", "double").stdout.count("A=1") == 1
