"""A program with kernels under @triton.autotune for a machine without a GPU: a stand-in for Triton's driver.

Nothing is launched. It prints the configurations with which its kernels would be, and how many were timed.
"""

import importlib.util
import json
import os
import sys
from types import ModuleType, SimpleNamespace

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

TIMED, LAUNCHED = [], []
autotune = triton.autotune
if (
    "FLA_READER" in os.environ
):  # the decorator of flash-linear-attention instead, which needs no more of PyTorch
    sys.modules["torch"] = ModuleType("torch")
    spec = importlib.util.spec_from_file_location("fla_cache", os.environ["FLA_READER"])
    sys.modules["fla_cache"] = fla_cache = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fla_cache)
    autotune = fla_cache.fla_cache_autotune


def bench(call, quantiles):
    """In place of Triton's: the first configuration is the fastest."""
    TIMED.append(call)
    return [float(len(TIMED))] * len(quantiles)


def launch(function, *arguments, **constants):
    """In place of Triton's launch."""
    LAUNCHED.append((function.__name__, {name: constants[name] for name in sorted(constants)}))


def configs(*blocks, pre_hook=None):
    return [triton.Config({"block": block}, num_warps=4, pre_hook=pre_hook) for block in blocks]


def autotuned(configurations, key=("n",)):
    return autotune(configs=configurations, key=list(key), cache_results=True, do_bench=bench)


@autotuned(configs(256, 512))
@triton.heuristics({"even": lambda named: named["n"] % named["block"] == 0})
@triton.jit
def scale(x, y, n, block: tl.constexpr, even: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@autotuned(configs(256, 512, pre_hook=lambda named: None))
@triton.jit
def hooked(x, y, n, block: tl.constexpr):
    pass


@autotuned(configs(256))
@triton.jit
def single(x, y, n, block: tl.constexpr):
    pass


@autotuned(configs(256, 512), key=())
@triton.jit
def keyless(n, block: tl.constexpr):
    pass


def array(n):
    return SimpleNamespace(dtype="torch.float32", shape=(n,))


def main():
    target = GPUTarget("cuda", 90, 32)
    driver.set_active(SimpleNamespace(get_current_target=lambda: target))
    JITFunction.run = launch
    for n in map(int, sys.argv[1:]):
        for kernel in (scale, hooked, single):
            kernel[(1,)](array(n), array(n), n)
        keyless[(1,)](n)
    sys.stdout.write(json.dumps({"timed": len(TIMED), "launched": LAUNCHED}))


if __name__ == "__main__":
    main()
