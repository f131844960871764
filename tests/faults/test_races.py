"""Kernels that race: right by luck on the CPU, and found with other schedules before they are stored."""

import shutil
import subprocess

import pytest

from autotune.checks import host_sanitizer
from autotune.checks.host_sanitizer import HOST_TOOLS, find_host_sanitizer
from autotune.cli.progress import SearchProgress
from autotune.compilers.source_text import perturbed
from autotune.core.trials import Status
from autotune.serving.cache import read_record
from autotune.tuning.options import Options
from autotune.tuning.task import Target, read_task
from autotune.tuning.tuner import search

SPACE = """\
schema: 1
kernel: last
source: last.cu
reference: last.py
dtypes: [int32]
sizes:
  default: {n: 64}
verify_sizes: [{n: 63}]
parameters:
  RACE: [0, 1]
  SLOW: [0, 1]
default: {RACE: 0, SLOW: 1}
arguments:
  - {name: x, dtype: int32, shape: [n], role: in, fill: {integers: [1, 100]}}
  - {name: y, dtype: int32, shape: [1], role: out}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: last, grid: [1], block: [n], arguments: [x, y, n]}
work: {bytes: 4 * n}
verify: {rtol: 0, atol: 0}
"""
KERNEL = """\
/* Keeps the last element. With RACE, which is faster, every thread writes, and the last one to run wins. */
#include "portable.h"
KERNEL last(GLOBAL const int *x, GLOBAL int *y, const int n)
{
    for (volatile int k = 0; k < SLOW * 200000 + !RACE * 100000; k++)
        ;
    if (RACE || THREAD_INDEX(x) == n - 1)
        *y = x[THREAD_INDEX(x)];
}
"""
REFERENCE = "def reference(inputs, sizes):\n    return {'y': inputs['x'][-1:]}\n"


def test_a_race_is_not_stored_and_what_could_not_be_checked_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(host_sanitizer, "TIMEOUT_S", 0.0)
    (tmp_path / "last.yaml").write_text(SPACE)
    (tmp_path / "last.cu").write_text(KERNEL)
    (tmp_path / "last.py").write_text(REFERENCE)
    options = Options(journal=tmp_path / "j.jsonl", cache=tmp_path / "cache", compilers=1, transfer=False)
    with SearchProgress() as progress:
        result = search(read_task(Target(tmp_path / "last.yaml", "opencl")), options, progress)
    assert dict(result.winner.config) == {"RACE": 0, "SLOW": 0}
    racing = [trial for trial in result.failed_last_round if trial.config["RACE"]]
    assert racing and all(trial.status is Status.WRONG_RESULT for trial in racing)
    assert all("with schedule 1: y[0] is" in trial.detail for trial in racing)
    (entry,) = read_record(str(result.cache_file)).entries
    assert not any(config["RACE"] for config in (entry.config, *entry.ties))
    gap = "took longer than 0 s" if find_host_sanitizer() else "g++ is not installed"
    missed = {name for name, reason in entry.provenance.checked.items() if reason}
    passed = {"data alternating", "data smallest", "data largest", "many runs", "other schedules"}
    assert missed == set(HOST_TOOLS) and passed <= entry.provenance.checked.keys()
    assert f"without races on the CPU, AddressSanitizer ({gap})" in capsys.readouterr().err


OPENCL_NAMES = """
#define __OPENCL_VERSION__ 120
unsigned long get_num_groups(unsigned int), get_group_id(unsigned int);
unsigned long get_local_size(unsigned int), get_local_id(unsigned int);
"""
PLACES = """
#include <stdio.h>
int main(void)
{
    for (unsigned int seed = 1; seed <= 2; seed++)
        for (unsigned int count = 1; count <= 9; count++, puts(""))
            for (unsigned int i = 0; i < count; i++)
                printf("%u ", autotune_place(i, count, seed));
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_each_thread_has_its_own_place_in_every_schedule(tmp_path):
    (tmp_path / "places.c").write_text(OPENCL_NAMES + perturbed(PLACES, 1))
    subprocess.run(["gcc", "-w", "places.c", "-o", "places"], cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "places"], capture_output=True, text=True, check=True).stdout
    rows = [list(map(int, line.split())) for line in printed.splitlines()]
    assert [sorted(row) for row in rows] == 2 * [list(range(count)) for count in range(1, 10)]
    assert rows[4] == [4, 3, 2, 1, 0] and rows[13] == [1, 0, 4, 3, 2]
