"""Little's law and occupancy as a page: the literature's two examples, an H200's figures, and a CPU."""

from dataclasses import replace

from autotune.cli.latency_lesson import lesson
from autotune.cli.tables import Table
from autotune.hardware.architectures import ARCHITECTURES
from autotune.serving.ceilings import BYTES, OPERATIONS, SECONDS, Ceiling
from tests.conftest import run_in_process
from tests.kernel_space import CPU

H200 = replace(ARCHITECTURES["sm_90"].device, name="H200")
FIGURES = {
    "latency of memory": (SECONDS, 338e-9),
    "memory read": (BYTES, 4388e9),
    "latency of float32 multiply-add": (SECONDS, 2.25e-9),
    "float32 multiply-add": (OPERATIONS, 64.4e12),
}
MEASURED = {name: Ceiling(name, unit, value, {}, {}) for name, (unit, value) in FIGURES.items()}


def page(device, ceilings):
    return "\n".join(map(str, lesson(device, ceilings)))


def cells(device, ceilings):
    """The cells of each row of the tables, by its first one."""
    tables = [part for part in lesson(device, ceilings) if isinstance(part, Table)]
    return {row[0]: row[1:] for part in tables for row in part.rows}


def test_the_examples_of_the_literature_come_out():
    fermi = {name: row[0] for name, row in cells(H200, MEASURED).items()}
    assert fermi["bandwidth"] == "144 GB/s = 92 bytes a cycle"
    assert fermi["in flight"] == "640"  # of multiply-adds; the table of bytes has a row of that name before
    assert fermi["warps with one each"] == "20 of at most 48"
    assert fermi["threads with a load of 4 bytes each"] == "18,391"
    assert fermi["warps on a multiprocessor"] == "36 of at most 48"


def test_the_occupancies_of_the_literature_come_out():
    fermi = {name: row[0] for name, row in cells(H200, MEASURED).items()}
    assert [fermi[count] for count in ("10", "21", "22", "32", "33")] == [
        "6 blocks, 1",
        *["5 blocks, 0.833"] * 2,
        "4 blocks, 0.667",
        "3 blocks, 0.5",
    ]


def test_a_measured_gpu_has_its_latencies_in_cycles_and_its_caps():
    here = {name: row[1] for name, row in cells(H200, MEASURED).items()}
    assert here["latency of a load"] == "669 cycles = 338 ns at 1.98 GHz"
    assert here["latency of a multiply-add"].startswith("4.46 cycles")
    assert here["warps on a multiprocessor"] == "88 of at most 64, so each needs more"
    assert here["warps with one each"] == "18 of at most 64"
    assert "3 with 80, 4 with 64" in page(H200, MEASURED)


def test_what_is_not_measured_is_told():
    assert "run `autotune devices --measure`" in page(H200, {})


def test_a_cpu_has_no_warps_and_says_what_is_not_known():
    only = {name: MEASURED[name] for name in ("latency of memory", "memory read")}
    here = {name: row[1] for name, row in cells(CPU, only).items()}
    assert here["latency of a load"] == "338 ns" and here["warps"] == here["33"] == "-"
    assert "It has no warps" in page(CPU, only)


def test_the_command_prints_the_page_and_measures_nothing(tmp_path):
    done = run_in_process(tmp_path, "devices", "--device", "opencl", "--lesson", "--cache", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Little" not in done.stderr and "5 blocks, 0.833" in done.stdout and not list(tmp_path.iterdir())
    refused = run_in_process(tmp_path, "devices", "--device", "opencl", "--lesson", "--json")
    assert refused.returncode == 2 and "leave out --json" in refused.stderr
