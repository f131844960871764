"""Sum an array of CuPy or PyTorch with the configuration that was tuned for the GPU at hand.

    autotune search reduce --size n=134217728 --dtype float32     # once per kind of GPU; commit the cache
    python examples/production_cupy_or_torch.py [cupy|torch]

The kernel runs in the package's current stream, and on arrays that the package owns: nothing is copied.
"""

import sys
from importlib.util import find_spec

from autotune import Tier, best_config, load_kernel

n = 134_217_728
package = sys.argv[1] if len(sys.argv) > 1 else "torch" if find_spec("torch") else "cupy"
if package == "torch":
    import torch

    x = torch.randint(-100, 101, (n,), device="cuda").to(torch.float32)
    total, ticket = x.new_empty(1), torch.zeros(1, dtype=torch.int32, device="cuda")
    work, expected, device = x.clone(), x.sum(dtype=torch.float64), x.device
else:
    import cupy

    x = cupy.random.randint(-100, 101, n, dtype=cupy.int32).astype(cupy.float32)
    total, ticket = cupy.empty(1, cupy.float32), cupy.zeros(1, cupy.uint32)
    work, expected, device = x.copy(), x.sum(dtype=cupy.float64), x.device

best = best_config("reduce", device, dtype="float32", n=n)
print(f"{best.match.tier.value}: {best.match.detail}")
if best.slowdown_at_most is not None:  # None: too little is known to say
    print(f"at most {best.slowdown_at_most:.2f} times as slow as the best possible, in nine cases of ten")
if not best.match.tier.reaches(Tier.NEAREST_SIZE):
    print("this GPU has no results of its own yet; autotune search makes some in minutes")

reduce = load_kernel("reduce")
reduce(x, work, total, ticket)
print("right" if float(total[0]) == float(expected) else "wrong")
