"""Which names are of one device, and what a name alone says."""

from dataclasses import replace

import pytest

from autotune.hardware.architectures import NAME_WORDS
from autotune.hardware.names import (
    ALIASES,
    Traits,
    canonical,
    is_same,
    traits_of,
    traits_of_name,
)
from tests.cache_example import DEVICE


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H200", "nvidia-h200"),
        ("NVIDIA H200", "H200 SXM"),
        ("Tesla T4", "NVIDIA T4"),
        ("NVIDIA GeForce RTX 3090", "GeForce RTX 3090"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("NVIDIA A100-PCIE-40GB", "A100 PCIe 40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("Intel(R) Xeon(R) Processor", "cpu-intel-xeon-processor"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "nvidia-a100-sxm4-40gb-mig-1g-5gb"),
    ],
)
def test_these_are_one_device(one, other):
    assert is_same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("NVIDIA H200", "NVIDIA H200 NVL"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 NVL"),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB"),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB"),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB MIG 1g.5gb"),
        ("NVIDIA A100-SXM4-40GB", "GRID A100-40C"),
        ("NVIDIA GeForce RTX 3080", "NVIDIA GeForce RTX 3080 Ti"),
        ("NVIDIA GeForce RTX 3080", "NVIDIA GeForce RTX 3080 Laptop GPU"),
        ("NVIDIA RTX A6000", "NVIDIA RTX 6000 Ada Generation"),
        ("NVIDIA A10", "NVIDIA A100"),
        ("NVIDIA A100-SXM4-40GB", "A100"),
    ],
)
def test_these_are_two_devices(one, other):
    assert not is_same(one, other)


@pytest.mark.parametrize(
    ("name", "vendor", "architecture"),
    [
        ("NVIDIA H200 NVL", "nvidia", "sm_90"),
        ("H100", "nvidia", "sm_90"),
        ("GRID A100-40C", "nvidia", "sm_80"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "nvidia", "sm_80"),
        ("GeForce RTX 4090", "nvidia", "sm_89"),
        ("NVIDIA RTX 6000 Ada Generation", "nvidia", "sm_89"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "nvidia", "sm_120"),
        ("Grace Blackwell GB200", "nvidia", "sm_100"),
        ("Quadro RTX 6000", "nvidia", None),
        ("Intel Xeon Gold 5080", "intel", None),  # the number alone is a GeForce's
        ("AMD Radeon 1080", "amd", None),
        ("Radeon Instinct MI100", "amd", "gfx908"),
        ("W6600", "amd", "gfx1032"),
        ("AMD Radeon RX 6800", "amd", None),
        ("Intel Arc A770 Graphics", "intel", None),
        ("Some accelerator", None, None),
    ],
)
def test_a_gpu_s_name_says_vendor_and_architecture_when_they_are_in_the_table(name, vendor, architecture):
    assert traits_of_name(name) == Traits("gpu", vendor, architecture)


def test_a_cpu_s_slug_says_so():
    assert traits_of_name("cpu-amd-epyc") == Traits("cpu", "amd", None)


def test_a_description_says_more_than_a_name_except_of_a_gpu_under_opencl():
    gpu = replace(DEVICE, name="NVIDIA H200", vendor="NVIDIA Corporation", architecture="sm_90")
    assert traits_of(gpu) == Traits("gpu", "nvidia", "sm_90")
    assert traits_of(replace(gpu, architecture="NVIDIA H200")) == Traits("gpu", "nvidia", "sm_90")
    assert traits_of(DEVICE) == Traits("gpu", "example", "ex_10")
    assert traits_of(replace(DEVICE, kind="cpu", vendor="GenuineIntel")).vendor == "intel"


def test_a_cpu_is_its_maker_s_and_of_its_model_whatever_runtime_drives_it():
    under_intel = replace(DEVICE, kind="cpu", vendor="Intel(R) Corporation", architecture="x86_64")
    epyc, xeon = (replace(under_intel, name=name) for name in ("AMD EPYC 9655", "Intel Xeon Gold 6448Y"))
    assert traits_of(epyc) == Traits("cpu", "amd", "9655 epyc")
    assert traits_of(xeon) == Traits("cpu", "intel", "6448y gold xeon")


def test_the_table_is_in_the_form_that_it_is_read_in():
    for alias, name in ALIASES.items():
        assert canonical(alias) == canonical(name) == name and alias != name
        assert alias.split() == sorted(alias.split())
    words = [word for known in NAME_WORDS.values() for word in known.split()]
    assert len(words) == len({*words})
