"""Sum an array on the first OpenCL device, with the configuration that was tuned for it.

    autotune search reduce --device opencl:0 --size n=1000000 --dtype float32     # once, where it will run
    python examples/production_opencl.py

Without a result for the device the closest one is used, in the end the kernel's default: `match` says which.
"""

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array

from autotune import best_config, load_kernel, opencl_devices

n = 1_000_000
context = cl.Context(opencl_devices()[:1])  # is kept: a queue of Intel's runtime does not keep it
queue = cl.CommandQueue(context)
numbers = np.random.default_rng(0).integers(-100, 101, n).astype(np.float32)  # every sum of them is exact

reduce = load_kernel("reduce")  # the device, the sizes and the element type follow the arrays
x = cl_array.to_device(queue, numbers)
work = x.copy()  # what a configuration that works in place may destroy
total = cl_array.empty(queue, 1, np.float32)
ticket = cl_array.zeros(queue, 1, np.uint32)
reduce(x, work, total, ticket).wait()

best = best_config("reduce", queue.device, dtype="float32", n=n)
print(f"{queue.device.name}: {best.match.tier.value}: {best.match.detail}")
print("right" if total.get()[0] == numbers.sum(dtype=np.float64) else "wrong")
