"""The tuned matrix addition beside PyTorch's and a device copy.

    python benchmarks/matadd.py [--cache DIR | --config 'NAME=VALUE ...'] [--rows N] [--columns N]

Needs an NVIDIA GPU, PyTorch and CuPy, and a tuned result in the cache (`autotune search matadd`) or a
configuration. The tuned result is compared with PyTorch's first. An addition moves three matrices, a copy
two: what is compared is the rate.
"""

from __future__ import annotations

import cupy
import torch
from beside_libraries import cached, parser, plan, show, take_turns, task, written


def main() -> None:
    """Check, let them take turns, print medians and ratios."""
    parsed = parser(__doc__ or "", rows=16384, columns=16384).parse_args()
    space = task("matadd", {"rows": parsed.rows, "columns": parsed.columns})
    config = written(space, parsed.config) if parsed.config else cached(space, parsed.cache)
    shape = (parsed.rows, parsed.columns)
    arrays = {name: cupy.random.standard_normal(shape, dtype=cupy.float32) for name in "ab"}
    run = plan(space, config, arrays)
    left, right, result = (torch.as_tensor(arrays[name], device="cuda") for name in "abc")
    total = torch.empty_like(left)
    run()
    cupy.cuda.Device().synchronize()
    if not torch.equal(result, left + right):
        raise SystemExit("the tuned addition is wrong")
    matrix = 4 * parsed.rows * parsed.columns
    contenders = {
        "autotune": run,
        "torch.add": lambda: torch.add(left, right, out=total),
        "device copy": lambda: total.copy_(left),
    }
    show(take_turns(contenders), {"autotune": 3 * matrix, "torch.add": 3 * matrix, "device copy": 2 * matrix})


if __name__ == "__main__":
    main()
