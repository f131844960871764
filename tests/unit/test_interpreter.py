"""`--device interpreter`: Triton's interpreter verifies kernels on a machine without a GPU."""

from types import SimpleNamespace

import pytest

from autotune import tune_sweep
from autotune.analysis.host_run import run_on_host
from autotune.core.outcomes import NO_TIME
from autotune.core.records import Config
from autotune.triton import tuned
from autotune.tuning.task import Target
from autotune.tuning.winner_checks import WinnerChecks
from tests.unit.test_triton import Recorder

pytest.importorskip("triton.runtime", reason="needs the extra triton")

KERNEL = """import triton
import triton.language as tl

@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)
"""
LIBDEVICE = "from triton.language.extra import libdevice\n"
SPACE = """schema: 1
kernel: scale
dialect: triton
source: scale.py
reference: scale_reference.py
dtypes: [float32, bfloat16]
sizes: {default: {n: 16_777_216}}
verify_sizes: [{n: 1}, {n: 33}]
parameters: {BLOCK: [16, 32]}
default: {BLOCK: 16}
arguments:
  - {name: x, dtype: DTYPE, shape: [n], role: in, fill: {normal: [0, 1]}}
  - {name: y, dtype: DTYPE, shape: [n], role: out}
  - {name: n, dtype: int32, value: n}
launch: [{entry: scale, grid: ["ceil_div(n, BLOCK)"], arguments: [x, y, n]}]
verify: {rtol: 1e-2, atol: 0}
"""


@pytest.fixture
def scale(folder):
    (folder.path / "scale.py").write_text(KERNEL)
    (folder.path / "scale.yaml").write_text(SPACE)
    (folder.path / "scale_reference.py").write_text(
        "def reference(inputs, sizes):\n    return {'y': 2 * inputs['x'].astype('float64')}\n"
    )
    return folder


def test_a_kernel_is_compared_with_its_reference_at_the_sizes_to_verify(scale):
    done = scale.run("run", "scale.yaml", "--device", "interpreter")
    assert done.returncode == 0, done.stderr
    assert "on Interpreter, n=1, float32" in done.stdout and "at n=1, n=33" in done.stdout
    assert " ms" not in done.stdout  # that says nothing about a GPU


def test_space_run_has_a_line_for_each_configuration_and_keeps_nothing(scale):
    space = scale.path / "scale.yaml"
    landmarks = "landmarks: {wide: {BLOCK: 32}}"
    space.write_text(SPACE.replace("default: {BLOCK", f"{landmarks}\ndefault: {{BLOCK"))
    before = {*scale.path.iterdir(), scale.path / "__pycache__"}  # Python's own, of the reference
    done = scale.run("space", "scale.yaml", "--run", "--device", "sm_90")
    assert done.returncode == 0, done.stderr
    default, wide, _, did, nothing = done.stdout.splitlines()
    assert default.startswith("default  ok at 2 sizes") and wide.startswith("wide     ok at 2 sizes")
    assert did.startswith(
        "checked results, reads and writes outside of arrays on the CPU (the interpreter of Triton"
    )
    assert nothing.startswith("nothing was timed") and {*scale.path.iterdir()} <= before
    space.write_text(SPACE.replace("[16, 32]", "[16, 32, 64, 128]"))
    done = scale.run("space", "scale.yaml", "--run", "--device", "sm_90")
    others = done.stdout.splitlines()[-1]
    command = "autotune search scale.yaml --device interpreter --budget 4 --cache rehearsal"
    assert others.startswith("2 of 4 configurations; ") and others.endswith(f"; for all: {command}")


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (", mask=at < n)\n", ")\n", "out_of_bounds: wrote outside y"),
        (
            "x + at, mask=at < n)",
            "x + at)",
            "out_of_bounds: scale, line 3 from its def, `tl.store(y + at, 2 * tl.load(x + at), "
            "mask=at < n)`: reads outside of all arrays",
        ),
        ("2 * tl", "3 * tl", "wrong_result: y[0]"),
        (
            "2 * tl",
            "n.missing * tl",
            "launch_error: scale, line 3 from its def, `tl.store(y + at, n.missing *",
        ),
        (
            "2 * tl",
            "libdevice.j0(1.0) * tl",
            "interpreter does not have __nv_j0f of libdevice: check the kernel",
        ),
    ],
)
def test_a_mistake_is_found_without_a_gpu(scale, right, wrong, said):
    (scale.path / "scale.py").write_text(LIBDEVICE + KERNEL.replace(right, wrong))
    done = scale.run("space", "scale.yaml", "--run", "--config", "BLOCK=32")
    assert done.returncode == 1 and done.stdout.startswith("as given  ") and said in done.stdout


def test_what_a_kernel_raises_is_placed_in_its_file(scale):
    helper = "@triton.jit\ndef twice(v):\n    # a comment\n    return v.missing\n\n"
    text = KERNEL.replace("2 * tl.load(x + at, mask=at < n)", "twice(tl.load(x + at, mask=at < n))")
    (scale.path / "scale.py").write_text(text.replace("@triton.jit\n", helper + "@triton.jit\n"))
    done = scale.run("search", "scale.yaml", "--device", "interpreter", "--budget", "1")
    assert (
        done.returncode == 1 and "scale.py:7: the default configuration fails on Interpreter" in done.stderr
    )
    assert "twice, line 3 from its def, `return v.missing`: AttributeError: " in done.stderr


def test_functions_of_libdevice_compute_as_on_a_gpu(scale):
    """Each is compared at the same values with its meaning in double precision."""
    meanings = {
        "rint(2 * v)": "np.rint(2 * v)",
        "rint(0 * v + 2.5)": "0 * v + 2",
        "nearbyint(v)": "np.rint(v)",
        "llrint(v)": "np.rint(v)",
        "round(2 * v)": "np.sign(v) * np.floor(abs(2 * v) + 0.5)",
        "round(0 * v - 2.5)": "0 * v - 3",
        "llround(v)": "np.sign(v) * np.floor(abs(v) + 0.5)",
        "tanh(v)": "1 - 2 / (np.exp(2 * v) + 1)",
        "erf(v)": "np.vectorize(math.erf)(v)",
        "erfc(v)": "np.vectorize(math.erfc)(v)",
        "exp10(v)": "10**v",
        "fast_expf(v)": "np.exp(v)",
        "asin(v)": "np.vectorize(math.asin)(v)",
        "abs(v)": "abs(v)",
        "isnan(v)": "0 * v",
        "finitef(v)": "0 * v + 1",
        "pow(tl.abs(v), 3.0)": "np.abs(v) ** 3",
        "fast_dividef(v, 3.0)": "v / 3",
        "hypot(v, 3.0)": "np.sqrt(v * v + 9)",
    }
    stores = "".join(
        f"    tl.store(y + {row} * n + at, libdevice.{call}, mask=at < n)\n"
        for row, call in enumerate(meanings)
    )
    head, _, _ = KERNEL.partition("    tl.store")
    (scale.path / "scale.py").write_text(
        f"{LIBDEVICE}{head}    v = tl.load(x + at, mask=at < n, other=0.0)\n{stores}"
    )
    space = SPACE.replace("shape: [n], role: out", f"shape: [{len(meanings)}, n], role: out")
    space = space.replace("{normal: [0, 1]}", "{uniform: [-1, 1]}")
    (scale.path / "scale.yaml").write_text(space.replace("rtol: 1e-2, atol: 0", "rtol: 1e-5, atol: 1e-6"))
    (scale.path / "scale_reference.py").write_text(
        "import math\nimport numpy as np\ndef reference(inputs, sizes):\n"
        "    v = inputs['x'].astype('float64')\n"
        f"    return {{'y': np.stack([{', '.join(meanings.values())}])}}\n"
    )
    done = scale.run("run", "scale.yaml", "--device", "interpreter", "--dtype", "float32")
    assert done.returncode == 0 and "at n=1, n=33" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("imported", ["extra.libdevice import rint", "extra.cuda.libdevice import rint"])
def test_functions_of_libdevice_are_found_by_each_of_their_names(scale, imported):
    text = KERNEL.replace("2 * tl", "2 * rint(0.75) * tl")
    (scale.path / "scale.py").write_text(f"from triton.language.{imported}\n{text}")
    done = scale.run("space", "scale.yaml", "--run", "--dtype", "float32")
    assert done.stdout.startswith("default  ok at 2 sizes"), done.stdout


def test_a_broken_reference_ends_all_runs(scale):
    (scale.path / "scale_reference.py").write_text("def reference(inputs, sizes):\n    return {}\n")
    done = scale.run("space", "scale.yaml", "--run")
    assert done.returncode == 1 and "returned nothing for the out argument y" in done.stderr


def test_sizes_that_no_time_is_left_for_are_not_run(scale):
    (found,) = run_on_host(Target(scale.path / "scale.yaml"), 0.0, Config({"BLOCK": 16})).runs
    assert (found.outcome, found.sizes) == (NO_TIME, 0)


def test_a_result_of_the_interpreter_serves_tensors_in_the_memory_of_the_host(scale):
    done = scale.run("search", "scale.yaml", "--device", "interpreter", "--budget", "2")
    assert done.returncode == 0, done.stderr

    class Scale(Recorder):
        arg_names = ("x", "y", "n", "BLOCK")

    array = SimpleNamespace(shape=(1,), dtype="torch.float32", device=SimpleNamespace(type="cpu"))
    kernel = tuned("scale", cache=scale.path / "cache", strict=True)(Scale("scale", constant=("BLOCK",)))
    assert kernel.constants(array, array, 1)["BLOCK"] in (16, 32)


def test_what_the_interpreter_cannot_do_is_said(scale):
    for words in (("run", "scale.yaml", "--device", "interpreter"), ("space", "scale.yaml", "--run")):
        done = scale.run(*words, "--dtype", "bfloat16")
        assert "computes wrongly with bfloat16, and x may not be" in done.stderr
    (scale.path / "scale.py").write_text(KERNEL.replace("mask=at < n)", "mask=at < n).to(tl.float32)", 1))
    done = scale.run("run", "scale.yaml", "--device", "interpreter", "--dtype", "bfloat16")
    assert done.returncode == 0 and "computes wrongly" not in done.stderr


def test_float32_is_rounded_to_the_nearest_bfloat16_as_on_a_gpu(scale):
    """Cutting bits off would leave each result up to a whole last bit too small."""
    (scale.path / "scale.py").write_text(
        KERNEL.replace(
            "2 * tl.load(x + at, mask=at < n)", "1.1 * tl.load(x + at, mask=at < n).to(tl.float32)"
        )
    )
    (scale.path / "scale_reference.py").write_text(
        "def reference(inputs, sizes):\n    return {'y': 1.1 * inputs['x'].astype('float64')}\n"
    )
    (scale.path / "scale.yaml").write_text(SPACE.replace("rtol: 1e-2", "rtol: 4e-3"))  # half a last bit
    done = scale.run("run", "scale.yaml", "--device", "interpreter", "--dtype", "bfloat16")
    assert done.returncode == 0, done.stderr


def test_a_mask_may_have_a_condition_of_the_whole_program(scale):
    (scale.path / "scale.py").write_text(KERNEL.replace("at < n", "(at < n) & (tl.program_id(0) < n)"))
    done = scale.run("space", "scale.yaml", "--run", "--dtype", "float32")
    assert done.stdout.startswith("default  ok at 2 sizes"), done.stdout


def test_a_kernel_may_load_by_tensor_descriptors(scale):
    by_descriptor = "tl.make_tensor_descriptor(x, [n], [1], [BLOCK]).load([tl.program_id(0) * BLOCK])"
    source = KERNEL.replace("tl.load(x + at, mask=at < n)", by_descriptor)
    (scale.path / "scale.py").write_text(source)
    done = scale.run("space", "scale.yaml", "--run", "--dtype", "float32")
    assert done.stdout.startswith("default  ok at 2 sizes"), done.stdout


def test_a_list_without_landmarks_names_the_search_that_verifies_all(scale):
    done = scale.run("run", "scale.yaml", "--device", "interpreter", "--landmarks")
    assert "search scale.yaml --device interpreter --budget 2" in done.stderr


def test_a_sweep_checks_where_a_configuration_has_most_kernels(scale, monkeypatch):
    """Triton compiles others for n = 1, for multiples of 16, and for what is neither."""
    checked, check = [], WinnerChecks.check

    def noted(self, context, configs, *rest):
        checked.append((context.task.space.problem.sizes["n"], *configs))
        return check(self, context, configs, *rest)

    monkeypatch.chdir(scale.path)
    monkeypatch.setattr(WinnerChecks, "check", noted)
    tune_sweep("scale.yaml", {"n": [1, 48]}, device="interpreter", budget=2)
    assert checked[0][0] == 48 and len(checked[0]) > 1
