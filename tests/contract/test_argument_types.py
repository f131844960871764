"""Structures, complex numbers and truth values arrive in a kernel as C lays them out."""

import pytest

from tests.devices_here import devices_here

KERNEL = """
#ifdef __OPENCL_VERSION__
#define KERNEL __kernel void
#define GLOBAL __global
#else
#define KERNEL extern "C" __global__ void
#define GLOBAL
#endif
typedef struct { float at[3]; char kind; double mass; } body_t;
typedef struct { char axis; float by; } step_t;

KERNEL move(GLOBAL const body_t *x, GLOBAL body_t *y, GLOBAL const float2 *z, GLOBAL float2 *turned,
            GLOBAL const unsigned char *flags, const step_t s, const float2 factor, const int n)
{
    for (int i = 0; i < n; i++) {
        y[i] = x[i];
        y[i].at[s.axis] += flags[i] ? s.by * WEIGHT : 0;
        turned[i].x = z[i].x * factor.x - z[i].y * factor.y;
        turned[i].y = z[i].x * factor.y + z[i].y * factor.x;
    }
}
"""
SPACE = """
schema: 1
kernel: move
dialect: DIALECT
source: move.cl
reference: reference.py
sizes: {default: {n: 33}}
parameters: {WEIGHT: [1, 2]}
default: {WEIGHT: 1}
arguments:
  - {name: x, fields: {at: [float32, 3], kind: int8, mass: float64}, shape: [n], role: in, fill: inputs}
  - {name: y, fields: {at: [float32, 3], kind: int8, mass: float64}, shape: [n], role: out}
  - {name: z, dtype: complex64, shape: [n], role: in, fill: {normal: [0, 1]}}
  - {name: turned, dtype: complex64, shape: [n], role: out}
  - {name: flags, dtype: bool, shape: [n], role: in, fill: {integers: [0, 1]}}
  - {name: s, fields: {axis: int8, by: float32}, value: {axis: 2, by: 1.5 / WEIGHT}}
  - {name: factor, dtype: complex64, value: "(0.5, 2)"}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: move, grid: [1], block: [1], arguments: [x, y, z, turned, flags, s, factor, n]}
verify: {rtol: 1e-5, atol: 1e-5}
"""
REFERENCE = """
import numpy as np

BODY = np.dtype([("at", "f4", (3,)), ("kind", "i1"), ("mass", "f8")], align=True)

def inputs(sizes, rng):
    bodies = np.zeros(sizes["n"], BODY)
    bodies["at"], bodies["kind"], bodies["mass"] = rng.random((sizes["n"], 3)), 7, rng.random(sizes["n"])
    return {"x": bodies}

def reference(inputs, sizes):
    moved = inputs["x"].copy()
    moved["at"][:, 2] += 1.5 * inputs["flags"]
    return {"y": moved, "turned": inputs["z"] * (0.5 + 2j)}
"""


@pytest.mark.parametrize(
    "name", ["opencl", *(pytest.param(name, marks=pytest.mark.gpu) for name in ("cuda", "pycuda"))]
)
def test_a_kernel_sees_them(folder, name):
    devices_here(name)
    (folder.path / "move.cl").write_text(KERNEL)
    (folder.path / "move.yaml").write_text(SPACE.replace("DIALECT", "opencl" if name == "opencl" else "cuda"))
    (folder.path / "reference.py").write_text(REFERENCE)
    done = folder.run("run", "move.yaml", "--device", f"{name}:0", "--config", "WEIGHT=2", "--json")
    assert done.returncode == 0, done.stderr
    assert '"status": "ok"' in done.stdout


POINTED = """
struct All { int n; const float *x; float *total; };
extern "C" __global__ void move(All all)
{
    for (int i = 0; i < all.n; i++)
        atomicAdd(all.total, WEIGHT * all.x[i]);
}
"""
ARGUMENTS = """
  - {name: x, dtype: float32, shape: [2 * n], role: in, fill: {integers: [0, 9]}}
  - {name: total, dtype: float32, shape: [1], role: inout, fill: {constant: 0}}
  - {name: right, dtype: float32, of: x, offset: n}
  - {name: all, fields: {n: int32, x: pointer, total: pointer}, value: {n: n, x: right, total: total}}
launch:
  - {entry: move, grid: [1], block: [1], arguments: [all]}
verify: {rtol: 0, atol: 0}
"""


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["cuda", "pycuda"])
@pytest.mark.parametrize(("factor", "status"), [(2, "ok"), (3, "wrong_result")])
def test_a_kernel_follows_the_pointers_of_a_structure(folder, name, factor, status):
    devices_here(name)
    (folder.path / "move.cl").write_text(POINTED)
    before = SPACE.partition("arguments:")[0].replace("DIALECT", "cuda")
    (folder.path / "move.yaml").write_text(f"{before}arguments:{ARGUMENTS}")
    (folder.path / "reference.py").write_text(
        "def reference(inputs, sizes):\n"
        f"    return {{'total': [{factor} * inputs['x'][sizes['n'] :].sum()]}}\n"
    )
    done = folder.run("run", "move.yaml", "--device", f"{name}:0", "--config", "WEIGHT=2", "--json")
    assert f'"status": "{status}"' in done.stdout, done.stderr
