"""The tuned transpose beside PyTorch's and a copy of the same bytes.

    python benchmarks/transpose.py [--cache DIR | --config 'NAME=VALUE ...'] [--rows N] [--columns N]

Needs an NVIDIA GPU, PyTorch and CuPy, and a tuned result in the cache (`autotune search transpose`) or a
configuration. The tuned result is compared with PyTorch's first. Rates count both directions.
"""

from __future__ import annotations

import cupy
import torch
from beside_libraries import cached, parser, plan, show, take_turns, task, written


def main() -> None:
    """Check, let them take turns, print medians and ratios."""
    parsed = parser(__doc__ or "", rows=16384, columns=16384).parse_args()
    space = task("transpose", {"rows": parsed.rows, "columns": parsed.columns})
    config = written(space, parsed.config) if parsed.config else cached(space, parsed.cache)
    matrix = cupy.random.standard_normal((parsed.rows, parsed.columns), dtype=cupy.float32)
    arrays = {"input": matrix}
    run = plan(space, config, arrays)
    tensor = torch.as_tensor(matrix, device="cuda")
    copy = torch.empty_like(tensor)
    run()
    cupy.cuda.Device().synchronize()
    if not torch.equal(torch.as_tensor(arrays["output"], device="cuda"), tensor.t()):
        raise SystemExit("the tuned transpose is wrong")
    contenders = {
        "autotune": run,
        "torch .t().contiguous()": lambda: tensor.t().contiguous(),
        "device copy": lambda: copy.copy_(tensor),
    }
    show(take_turns(contenders), dict.fromkeys(contenders, 8 * parsed.rows * parsed.columns))


if __name__ == "__main__":
    main()
