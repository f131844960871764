"""A kernel that only waits, for scripts that need many trials and no device."""

from collections.abc import Iterable, Mapping
from pathlib import Path

_SPACE = """\
schema: 1
kernel: wait
dialect: python
source: wait.py
reference: reference.py
sizes: {default: {n: 1000}}
verify_sizes: [{n: 1}, {n: 17}]
dtypes: [int32]
parameters:
PARAMETERS
default: {DEFAULT}
arguments:
  - {name: x, dtype: int32, shape: [n], role: in, fill: {integers: [-100, 100]}}
  - {name: y, dtype: int32, shape: [n], role: out}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: wait, grid: [1], block: [1], arguments: [x, y, n]}
verify: {rtol: 0, atol: 0}
"""
_KERNEL = """\
import time

def wait(grid, block, x, y, n):
    time.sleep(PAUSE_S)
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return TIME_MS
"""
_REFERENCE = "def reference(inputs, sizes):\n    return {'y': 2 * inputs['x']}\n"


def write_waiting_kernel(
    folder: Path, parameters: Mapping[str, Iterable[int]], pause_s: float, time_ms: str
) -> None:
    """Write `wait.yaml`, its kernel and its reference.

    Args:
        folder: Where to.
        parameters: Values by name; the first ones are the default.
        pause_s: How long a run waits.
        time_ms: The time that a run tells the fake device, as an expression of the parameters.
    """
    domains = {name: list(values) for name, values in parameters.items()}
    lines = "\n".join(f"  {name}: {values}" for name, values in domains.items())
    default = ", ".join(f"{name}: {values[0]}" for name, values in domains.items())
    (folder / "wait.yaml").write_text(_SPACE.replace("PARAMETERS", lines).replace("DEFAULT", default))
    (folder / "wait.py").write_text(_KERNEL.replace("PAUSE_S", str(pause_s)).replace("TIME_MS", time_ms))
    (folder / "reference.py").write_text(_REFERENCE)
