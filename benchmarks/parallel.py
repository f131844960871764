"""How busy a search keeps many devices, and what a trial costs the searching process: fake devices, no GPU.

    python benchmarks/parallel.py [--devices 8] [--trials 400] [--trial-ms 50] [--engine random] [--processes]

A kernel that only waits makes trials of about that length. "busy" is the share of the time during which the
devices had a trial; the linear rate would be 100%. CPU time is that of the searching process, with scheduler
and compilers' threads, but without compilers and device processes. Dask's workers are threads of this
process, as with `--devices`, or processes, as with `--cluster local:N`.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import tempfile
import time
from contextlib import chdir, suppress
from pathlib import Path

RUNS_PER_TRIAL = 8  # of the kernel: three to verify it, one to warm up, four samples
KERNEL = """\
import time

def wait(grid, block, x, y, n):
    time.sleep(PAUSE_S)
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return 1.0 + A * 1e-4 + B * 1e-6
"""
SPACE = """\
schema: 1
kernel: wait
dialect: python
source: wait.py
reference: reference.py
sizes:
  default: {{n: 1000}}
verify_sizes: [{{n: 1}}, {{n: 17}}]
dtypes: [int32]
parameters:
  A: {values}
  B: {values}
  PAUSE_S: [{pause_s}]
default: {{A: 0, B: 0, PAUSE_S: {pause_s}}}
arguments:
  - {{name: x, dtype: int32, shape: [n], role: in, fill: {{integers: [-100, 100]}}}}
  - {{name: y, dtype: int32, shape: [n], role: out}}
  - {{name: n, dtype: int32, value: n}}
launch:
  - {{entry: wait, grid: [1], block: [1], arguments: [x, y, n]}}
verify: {{rtol: 0, atol: 0}}
"""
REFERENCE = "def reference(inputs, sizes):\n    return {'y': 2 * inputs['x']}\n"


def main() -> None:
    """Search once and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--trial-ms", type=float, default=50.0)
    parser.add_argument("--engine", default="exhaustive")
    parser.add_argument("--processes", action="store_true", help="Dask's workers are processes")
    parsed = parser.parse_args()
    os.environ["AUTOTUNE_FAKE_DEVICES"] = str(parsed.devices)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        pause_s = round(parsed.trial_ms / RUNS_PER_TRIAL / 1e3, 6)
        values = list(range(math.isqrt(parsed.trials - 1) + 1))
        Path("wait.yaml").write_text(SPACE.format(values=values, pause_s=pause_s))
        Path("wait.py").write_text(KERNEL)
        Path("reference.py").write_text(REFERENCE)
        search(parsed.devices, parsed.engine, parsed.processes)


def search(count: int, engine: str, in_processes: bool) -> None:
    """Try the whole space with so many devices."""
    from autotune.core.stages import unobserved
    from autotune.core.trials import Budget
    from autotune.errors import BudgetSpent
    from autotune.searchers import make_searcher
    from autotune.tuning.cluster import local_devices, open_cluster, open_devices
    from autotune.tuning.context import FULL_POLICY, Unobserved, open_context
    from autotune.tuning.options import Options
    from autotune.tuning.task import Target, bind_target

    devices = local_devices(",".join(f"fake:{number}" for number in range(count)))
    task = bind_target(Target(Path("wait.yaml")), found=devices[0])
    options = Options(budget=Budget(), binary_cache=False)
    opened = open_cluster(f"local:{count}", "fake", unobserved) if in_processes else open_devices(devices)
    with (
        opened as cluster,
        open_context(task, options, Unobserved(), FULL_POLICY, cluster=cluster) as context,
    ):
        warm = list(task.space)[: 4 * count]
        context.evaluator(warm)  # every device process has started
        memory_bytes, began, cpu_s = _memory_bytes(), time.perf_counter(), time.process_time()
        with suppress(BudgetSpent):
            make_searcher(engine).search(task.space, context.evaluator, seed=0)
        seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu_s
        trials = [trial for config, trial in context.evaluator.trials.items() if config not in warm]
    busy = sum(trial.cost_s for trial in trials) / (seconds * count)
    grown = (_memory_bytes() - memory_bytes) / len(trials)
    cells = (
        *(str(count), str(len({trial.device for trial in trials})), str(len(trials))),
        f"{sum(trial.cost_s for trial in trials) / len(trials) * 1e3:.1f} ms",
        *(f"{len(trials) / seconds:.1f}", f"{busy:.1%}"),
        *(f"{cpu_s / len(trials) * 1e3:.2f} ms", f"{grown:.0f} bytes"),
    )
    load = os.getloadavg()[0]
    print("| devices | used | trials | mean trial | trials per s | busy | CPU per trial | memory per trial |")
    print("|---" * len(cells) + "|\n| " + " | ".join(cells) + " |")
    print(f"{os.cpu_count()} cores, load {load:.1f}")


def _memory_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
