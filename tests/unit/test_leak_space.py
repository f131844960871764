"""The calcium release and the two small kernels beside it: ladder, options, launches and references."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from autotune.compilers.nvrtc import CudaCompiler
from autotune.compilers.source_text import read_source, render
from autotune.core.trials import Problem
from autotune.problem.inputs import draw_inputs
from autotune.problem.workload import Array
from autotune.space import constraint_report, lint
from tests import kernel_space
from tests.kernel_space import CPU, bound, reference_module, spec_of

LEAK, SINE, EMPTY = (spec_of(name) for name in ("leak", "sine", "empty"))
GPU = replace(kernel_space.GPU, backend="cuda")


def _landmark(spec, name):
    return next(landmark.config for landmark in spec.landmarks if landmark.name == name)


@pytest.mark.parametrize("spec", [LEAK, SINE, EMPTY], ids=lambda spec: spec.kernel)
def test_every_landmark_is_valid_on_a_gpu_and_only_other_devices_need_the_block_limit(spec):
    space = bound(spec, GPU)
    for landmark in spec.landmarks:
        assert space.why_invalid(landmark.config) == (), landmark.name
        assert landmark.note
    found = lint(space, read_source(spec.source).text, constraint_report(space)).mistakes
    device_limits = {text for text in (c.text for c in spec.constraints) if "device." in text}
    assert {(item.kind, item.subject in device_limits) for item in found} <= {("idle_constraint", True)}


def test_the_landmarks_cover_the_sources_choices_in_their_order():
    steps = [int(re.match(r"leak(\d+)_", landmark.name)[1]) for landmark in LEAK.landmarks]
    assert steps == sorted(steps)
    assert set(steps) == {1, 2, 3, 4, 5, 6, 7, 9}  # 8 is the space of sines, 10 the empty kernel's


def test_a_cpu_keeps_what_its_compiler_understands():
    space = bound(LEAK, CPU)
    assert len(space) > 1000
    index = [parameter.name for parameter in LEAK.parameters].index("MAX_REGISTERS")
    assert set(space.rows[:, index].tolist()) == {0}
    flushed = {**LEAK.default, "FLUSH_TO_ZERO": True}
    assert space.options(flushed, "opencl") == ("-cl-denorms-are-zero",)
    assert space.options(LEAK.default, "opencl") == ()


def test_options_of_the_cuda_compiler_are_parameters():
    space = bound(LEAK, GPU)
    assert space.options(LEAK.default, "cuda") == ("--ftz=false", "--prec-div=true", "--prec-sqrt=true")
    capped = _landmark(LEAK, "leak3_register_cap")
    assert "--maxrregcount=32" in space.options(capped, "cuda")
    fast = _landmark(LEAK, "leak6_fast_single_precision")
    assert space.options(fast, "cuda") == ("--ftz=true", "--prec-div=false", "--prec-sqrt=false")


def test_the_register_cap_lowers_the_number_of_registers():
    space, compiler, source = bound(LEAK, GPU), CudaCompiler("sm_75"), read_source(LEAK.source)

    def registers(config):
        return compiler.compile(render(source, space.macros(config)), space.options(config, "cuda")).registers

    assert registers(_landmark(LEAK, "leak3_register_cap")) <= 32 < registers(LEAK.default)


@pytest.mark.parametrize("n", [1, 2, 1_003, 19_968])
@pytest.mark.parametrize("launches", [1, 2])
def test_the_launches_have_a_thread_for_every_unit(n, launches):
    space = bound(LEAK, GPU)
    config = {**LEAK.default, "UNITS_PER_THREAD": 2, "BLOCK_SIZE": 96, "LAUNCHES": launches}
    values, plan = space.values(config, {"n": n}), space.launches(config, {"n": n})
    assert len(plan) == launches
    parts = [values["MIDDLE"], n - values["MIDDLE"]][:launches]
    assert sum(parts) == n
    assert [step.grid[0] for step in plan] == [max(1, math.ceil(part / (96 * 2))) for part in parts]


def test_no_check_is_allowed_only_where_the_threads_are_as_many_as_the_units():
    space = bound(LEAK, GPU)
    unchecked = _landmark(LEAK, "leak1_no_check")
    assert space.holds(unchecked, {"n": 19_968}) and not space.holds(unchecked, {"n": 19_967})
    halves = {**unchecked, "LAUNCHES": 2, "BLOCK_SIZE": 64}
    assert space.holds(halves, {"n": 19_968}) and not space.holds(halves, {"n": 19_968 - 64})


def test_the_release_follows_the_equations_of_one_unit():
    module = reference_module(LEAK)
    constants = {item.name: float(item.value) for item in LEAK.arguments if item.name in "p1p2p3p4p5p6p7k"}
    p = [constants[f"p{number}"] for number in range(1, 8)]
    assert [*p, constants["k"]] == [getattr(module, name) for name in (*(f"P{i}" for i in range(1, 8)), "K")]
    up, down = np.linspace(0.5, 2, 32).reshape(2, 16), np.linspace(2, 0.5, 32).reshape(2, 16)
    columns = np.array([[0.5, 2.0], [1.0, 3.0], [0.25, 4.0]])
    inputs = {"columns": columns, "states": np.array([0, 15]), "up": up, "down": down}
    result = module.reference(inputs, {"n": 2})
    for unit, state in enumerate((0, 15)):
        calcium, store, g = columns[:, unit]
        closed = math.exp(p[0] * ((module.K - g) * p[1] + (1 - g) * p[2]))
        opening = calcium ** p[3] * (p[4] * store + p[5]) * p[6] * math.exp(p[0] * (p[1] + p[2])) / closed
        expected = [
            opening * up[0, state] + closed * down[0, state],
            opening * up[1, state],
            closed * down[1, state],
        ]
        assert result["rates"][:, unit] == pytest.approx(expected, rel=1e-14)
    assert result["targets"].tolist() == [[0, 15], [1, 15], [0, 14]]


def test_both_layouts_hold_the_same_units():
    """The array of structures is filled with the transpose of the columns."""
    specs = {argument.name: argument for argument in LEAK.arguments}
    arrays = tuple(
        Array(name, "float64", shape, "in", (specs[name].fill.kind, *specs[name].fill.arguments))
        for name, shape in (("columns", (3, 5)), ("structures", (5, 3)))
    )
    inputs = draw_inputs(Problem({"n": 5}, "float64"), arrays)
    assert inputs["columns"].std() > 0
    assert inputs["structures"].flags.c_contiguous
    assert np.array_equal(inputs["structures"], inputs["columns"].T)


@pytest.mark.parametrize("largest", [1, 100_000])
def test_sines_are_those_of_the_angle_that_single_precision_makes(largest):
    x = np.array([0, 0.1, -1], np.float32)
    result = reference_module(SINE).reference({"x": x}, {"n": 3, "largest": largest})
    angle = float(np.float32(0.1) * np.float32(largest))
    assert result["sines"].tolist() == pytest.approx([0, math.sin(angle), -math.sin(largest)], abs=1e-12)
    assert result["cosines"].tolist() == pytest.approx([1, math.cos(angle), math.cos(largest)], abs=1e-12)


def test_the_empty_kernel_has_a_thread_for_everything_in_each_launch():
    space = bound(EMPTY, GPU)
    for config in space:
        plan = space.launches(config)
        assert len(plan) == config["LAUNCHES"]
        assert all(0 <= step.grid[0] * step.block[0] - 19_968 < step.block[0] for step in plan)
