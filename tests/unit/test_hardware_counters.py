"""Counters of Nsight Compute: its table becomes figures of a run, and what it may not do becomes one line."""

import pytest

from autotune.cli.device_use import counters_text
from autotune.diagnosis.hardware_counters import read_counters, why_no_counters
from autotune.errors import SetupError

THREADS = "smsp__thread_inst_executed_per_inst_executed.ratio"
TABLE = f"""==PROF== Connected to process 7
"ID","Kernel Name","gpu__time_duration.sum","dram__bytes.sum","{THREADS}"
"","","nsecond","byte","inst"
"0","reduce","3,000","1,000,000","32"
"1","reduce","1,000","500","16"
"""


def test_totals_add_up_and_other_figures_are_means_over_the_time_of_the_launches():
    found = read_counters(TABLE)
    assert found == {"DRAM bytes": 1_000_500.0, "active threads": 28.0}
    assert counters_text(found) == "counters   DRAM bytes 1e+06, active threads 28"


def test_a_counter_that_the_device_does_not_have_is_left_out():
    assert "DRAM bytes" not in read_counters(TABLE.replace("1,000,000", "n/a").replace('"500"', '"n/a"'))


def test_a_mean_is_over_the_launches_that_have_the_counter():
    assert read_counters(TABLE.replace('"32"', '"n/a"'))["active threads"] == 16


@pytest.mark.parametrize("text", ["", "==ERROR== no kernels were profiled", TABLE.partition('"0"')[0]])
def test_a_table_without_a_launch_is_told(text):
    with pytest.raises(SetupError, match="no launch"):
        read_counters(text)


def test_a_missing_permission_says_what_to_do():
    error = SetupError("ncu wrote no report: ==ERROR== ERR_NVGPUCTRPERM - The user does not have permission")
    assert "NVreg_RestrictProfilingToAdminUsers=0" in why_no_counters(error)
    assert why_no_counters(SetupError("ncu: it hangs")) == "no hardware counters: ncu: it hangs"
