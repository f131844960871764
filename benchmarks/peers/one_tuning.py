"""A whole process of Kernel Tuner: draws the inputs, computes the reference, tunes and verifies.

    python benchmarks/peers/one_tuning.py PLAN RESULT

whole_processes.py writes PLAN and reads RESULT. A plan has each configuration as a rendered source and a
launch, so Kernel Tuner has one parameter of interest: the number of a configuration.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from kernel_tuner import tune_kernel
from kernel_tuner.accuracy import Tunable

NUMBER = "configuration_number"
BLOCK = ("block_size_x", "block_size_y", "block_size_z")
Params = dict[str, Any]


def prepared(plan: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], float]:
    """The arguments and the expected outputs by name, and the largest error that an output may have."""
    from autotune.devices.element_types import numpy_dtype
    from autotune.problem.inputs import prepare

    data = prepare(plan["problem"], plan["reference"])
    arrays = {
        name: data.inputs[name] if name in data.inputs else np.zeros(shape, numpy_dtype(dtype))
        for name, (dtype, shape) in plan["arrays"].items()
    }
    bounds = {name: plan["problem"].tolerance_of(name) for name in data.expected}
    atol = max(
        bound.atol + bound.rtol * float(np.abs(data.expected[name]).max()) for name, bound in bounds.items()
    )
    return arrays, dict(data.expected), atol


def argument(position: int, steps: list[dict[str, Any]], arrays: dict[str, Any]) -> Any:
    """One argument of the kernel, which may differ between configurations."""
    passed = [step["arguments"][position] for step in steps]
    found = {one: arrays[one] if isinstance(one, str) else np.dtype(one[0]).type(one[1]) for one in passed}
    return Tunable(lambda params: passed[params[NUMBER]], found) if len(found) > 1 else found[passed[0]]


def tuned(plan: dict[str, Any], arrays: dict[str, Any], expected: dict[str, Any], atol: float) -> list[Any]:
    """Tune with Kernel Tuner."""
    steps = plan["steps"]
    first = steps[0]["arguments"]
    answer = [expected.get(one) if isinstance(one, str) else None for one in first]

    def has_own_block(params: Params) -> bool:
        return all(params[name] == steps[params[NUMBER]]["block"][axis] for axis, name in enumerate(BLOCK))

    shared = {"size": lambda params: steps[params[NUMBER]]["shared_bytes"]}
    results, _ = tune_kernel(
        plan["entry"],
        lambda params: steps[params[NUMBER]]["source"],
        lambda params: steps[params[NUMBER]]["grid"],
        [argument(position, steps, arrays) for position in range(len(first))],
        {
            NUMBER: list(range(len(steps))),
            **{name: sorted({step["block"][axis] for step in steps}) for axis, name in enumerate(BLOCK)},
        },
        grid_div_x=[],
        grid_div_y=[],
        grid_div_z=[],
        restrictions=[has_own_block],
        answer=answer,
        atol=atol,
        smem_args=shared if any(step["shared_bytes"] for step in steps) else None,
        quiet=True,
        **plan["options"],
    )
    return list(results)


def main() -> None:
    """Run the plan, and write the figures."""
    began = time.perf_counter()
    plan = pickle.loads(Path(sys.argv[1]).read_bytes())
    arrays, expected, atol = prepared(plan)
    inputs_s = time.perf_counter() - began
    if plan["options"]["lang"] == "OpenCL":  # a CPU's runtime that came with autotune
        from autotune.devices.opencl_platforms import opencl_devices

        opencl_devices()
    results = tuned(plan, arrays, expected, atol)
    timed = [float(result["time"]) for result in results if isinstance(result["time"], float)]
    figures = {"inputs_s": inputs_s, "right": len(timed), "best_ms": min(timed)}
    Path(sys.argv[2]).write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
