"""`tune_kernel` and `run_kernel` with Kernel Tuner's signatures, on the CPU through OpenCL."""

import inspect
import json
import re
from pathlib import Path

import kernel_tuner
import numpy as np
import pytest
from kernel_tuner.accuracy import AccuracyObserver, TunablePrecision
from kernel_tuner.observers.nvml import NVMLObserver
from kernel_tuner.strategies import random_sample
from kernel_tuner.util import CompilationFailedConfig, RuntimeFailedConfig

import autotune
from autotune import InputError
from autotune.analysis.find_journal import find_journal
from autotune.core.expressions import parse
from autotune.core.records import Config
from autotune.core.trials import Budget
from autotune.errors import SetupError
from autotune.evaluation.journal import read_journal
from autotune.kernel_tuner import run_kernel, tune_kernel
from autotune.kernel_tuner.arguments import read_arguments
from autotune.kernel_tuner.call import KernelCall
from autotune.kernel_tuner.goal import search_options
from autotune.kernel_tuner.launch import LaunchRule
from autotune.kernel_tuner.parameters import RESULT_NAMES, read_parameters
from autotune.kernel_tuner.request import read_request
from autotune.kernel_tuner.restrictions import read_restriction
from autotune.problem import stored_inputs
from autotune.serving.device_records import newest

SIZE = 1000
ADD = """
__kernel void vector_add(__global float *c, __global const float *a, __global const float *b, int n) {
    int i = get_group_id(0) * block_size_x + get_local_id(0);
    if (i < n) c[i] = a[i] + b[i];
}
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def arguments():
    a, b = np.random.default_rng(1).random((2, SIZE)).astype(np.float32)
    return [np.zeros_like(a), a, b, np.int32(SIZE)]


def tuned(source=ADD, params=None, **options):
    given = arguments()
    params = {"block_size_x": [32, 64]} if params is None else params
    return tune_kernel("vector_add", source, SIZE, given, params, quiet=True, **options)


@pytest.mark.parametrize("function", [tune_kernel, run_kernel])
def test_signatures_are_kernel_tuner_s(function):
    theirs = inspect.signature(getattr(kernel_tuner, function.__name__)).parameters
    ours = inspect.signature(function).parameters
    assert [(one.name, one.default) for one in ours.values()] == [
        (one.name, one.default) for one in theirs.values()
    ]


def test_every_configuration_is_a_dictionary_as_kernel_tuner_makes_it():
    given = arguments()
    answer = [given[1] + given[2], None, None, None]
    metrics = {"GFLOP/s": lambda p: SIZE / p["time"] * 1e-6, "twice": "2 * time"}
    results, env = tuned(answer=answer, metrics=metrics, restrictions=["block_size_x > 0", lambda p: True])
    assert [row["block_size_x"] for row in results] == [32, 64]
    for row in results:
        assert row["time"] == np.median(row["times"]) and row["twice"] == 2 * row["time"]
        assert row["GFLOP/s"] > 0
        assert {"compile_time", "verification_time", "benchmark_time", "strategy_time"} < row.keys()
        assert row.keys() <= RESULT_NAMES | {"block_size_x", *metrics}
    assert env["best_config"] in results and env["device_name"]
    json.dumps([results, env])


def test_what_is_defined_for_each_configuration_is_no_finding(capsys):
    tune_kernel("vector_add", ADD, SIZE, arguments(), {"block_size_x": [32, 64]})
    assert "#define" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("params", "unused"),
    [
        ({"block_size": [32, 64]}, [("block_size", "; did you mean block_size_x?")]),
        ({"block_size_x": [32, 64], "per_block": [32, 64]}, [("per_block", "")]),
        ({"block_size_x": [32, 64]}, []),
    ],
)
def test_a_parameter_that_only_its_definition_names_is_a_finding(params, unused, capsys):
    tune_kernel("vector_add", ADD, SIZE, arguments(), params)
    said = capsys.readouterr().err
    assert re.findall(r"warning: .*: (\w+): declared, but not used .* or remove it(.*)", said) == unused


def test_a_parameter_that_a_function_of_the_script_reads_is_used(capsys):
    source = ADD.replace("block_size_x", "BLOCK")
    params = {"size": [32, 64], "rows": [1, 2], "words": ["a", "b"]}
    tune_kernel(
        "vector_add",
        lambda p: f"/* {p['words']} */{source}",
        SIZE,
        arguments(),
        params,
        lang="OpenCL",
        grid_div_x=[lambda p: p["size"] / p["rows"]],
        defines={"BLOCK": lambda p: p["size"], "block_size_x": 64},
    )
    assert "not used" not in capsys.readouterr().err


def test_a_wrong_result_is_an_error_of_its_configuration(capsys):
    wrong = ADD.replace("a[i] +", "a[i] + (block_size_x == 64) +")
    given = arguments()
    call = ("vector_add", wrong, SIZE, given, {"block_size_x": [32, 64]})
    results, env = tune_kernel(*call, answer=[given[1] + given[2], None, None, None])
    said = capsys.readouterr().out
    assert "failed  1 wrong_result, all" not in said and "failed  1 wrong_result: argument_0[0] is " in said
    assert "        their rows have `__error__` and no `time`\n" in said
    assert isinstance(results[1]["__error__"], RuntimeFailedConfig) and "time" not in results[1]
    assert env["best_config"]["block_size_x"] == 32


def test_a_configuration_that_does_not_compile_is_one_too(monkeypatch):
    """The arrays are stored once, although another default is tried after the first one."""
    saved, save = [], stored_inputs._stored
    monkeypatch.setattr(stored_inputs, "_stored", lambda *given: saved.append(given) or save(*given))
    broken = "#if block_size_x == 32\n#error no\n#endif\n" + ADD
    results, _ = tuned(broken)
    failed = [row for row in results if "__error__" in row]
    assert [row["block_size_x"] for row in failed] == [32]
    assert isinstance(failed[0]["__error__"], CompilationFailedConfig)
    assert len(saved) == 3


def test_a_kernel_that_never_works_is_told():
    with pytest.raises(SetupError, match="the default configuration fails"):
        tuned("#error no\n" + ADD)


def test_several_configurations_are_tried_as_the_default_without_a_word_of_each(capsys):
    broken = "#if block_size_x < 128\n#error no\n#endif\n" + ADD
    tune_kernel("vector_add", broken, SIZE, arguments(), {"block_size_x": [32, 64, 128], "A": [1]})
    said = capsys.readouterr().err
    assert said.count("trials go to") == 1 and "started over" not in said
    with pytest.raises(SetupError):
        tune_kernel("vector_ad", ADD, SIZE, arguments(), {"block_size_x": [32, 64]})
    assert capsys.readouterr().err.count("the source has no kernel vector_ad") == 1


def test_a_kernel_that_is_always_wrong_is_told_apart_from_the_answer_of_the_script():
    given = arguments()
    with pytest.raises(SetupError) as caught:
        tuned(answer=[given[1] + given[2] + 1, None, None, None])
    assert re.search(
        r"the kernel at .* gave [\d.]+ and the answer [\d.]+: correct the one", str(caught.value)
    )
    assert "`reference`" not in str(caught.value) and "--dump-wrong" not in str(caught.value)


def test_a_wrong_kernel_is_named_by_its_file(tmp_path):
    (tmp_path / "sums.cl").write_text(ADD.replace("a[i] +", "a[i] -"))
    given = arguments()
    with pytest.raises(SetupError, match=r"^sums.cl:2: .*\n.* the kernel at sums.cl:2 gave"):
        tuned("sums.cl", params={"block_size_x": [32]}, answer=[given[1] + given[2], None, None, None])


def test_verbose_tells_of_each_configuration(capsys):
    tune_kernel("vector_add", ADD, SIZE, arguments(), {"block_size_x": [32, 64]}, verbose=True)
    said = capsys.readouterr().err
    assert re.search(r"(?m)^\d \S+ ms: block_size_x=64$", said), said


def test_the_script_s_own_verify_decides():
    seen = []

    def verify(answer, outputs, atol=None):
        seen.append((answer, outputs[0], atol))
        return len(seen) == 1

    results, _ = tuned(answer=["anything"], verify=verify, atol=0.5)
    given = arguments()
    assert seen[0][0] == ["anything"] and seen[0][2] == 0.5
    assert np.allclose(seen[0][1], given[1] + given[2])
    assert "__error__" in results[1]


def test_the_same_call_resumes_and_the_best_is_served():
    first, _ = tuned()
    again, _ = tuned()
    assert [row["benchmark_time"] for row in first] == [row["benchmark_time"] for row in again]
    assert autotune.best_config("vector_add", x=SIZE)["block_size_x"] in (32, 64)


@pytest.mark.parametrize("size", [(SIZE, 1), SIZE])
def test_a_result_with_other_sizes_or_arguments_does_not_replace_one(size):
    tuned()
    record = next(Path("cache").glob("*/vector_add.json"))
    stored = record.read_text()
    source, given = ADD.replace("int n)", "int n, int more)"), [*arguments(), np.int32(1)]
    if size != SIZE:
        source, given = ADD, arguments()
    with pytest.raises(InputError, match=r"vector_add with other sizes or arguments: x, .* AUTOTUNE_CACHE"):
        tune_kernel("vector_add", source, size, given, {"block_size_x": [32]}, quiet=True)
    assert record.read_text() == stored


def test_the_best_has_the_time_of_the_last_round_wherever_it_is_said(capsys):
    results, env = tune_kernel("vector_add", ADD, SIZE, arguments(), {"block_size_x": [32, 64]})
    best, said = env["best_config"], capsys.readouterr()
    assert best["time"] == autotune.best_config("vector_add", x=SIZE).time_ms
    assert [row for row in results if row["block_size_x"] == best["block_size_x"]] == [best]
    assert f"time={best['time']:.3f}" in said.out
    journal = re.search(r"(?m)^next    autotune report (runs/kernel_tuner/vector_add\..*)$", said.out)[1]
    assert find_journal("vector_add") == Path(journal)
    content = read_journal(Path(journal))
    finals = content.last_round.measurements
    assert {row["block_size_x"]: row["time"] for row in results} == {
        trial.config["block_size_x"]: finals.get(trial.key, trial.measurement).median_ms
        for trial in content.trials
    }
    assert len(finals) == 2 and f"kept    {next(Path('cache').glob('*/vector_add.json'))}" in said.out
    assert "sanitizers are off" in said.err and "--no-sanitizer" not in said.err


def test_the_launch_of_a_result_is_served_for_any_size():
    tuned(params={"block_size_x": [32]}, grid_div_x=["block_size_x", 2])
    (launch,) = autotune.best_config("vector_add", x=SIZE).launch(x=6400)
    assert (launch.grid, launch.block) == ((100, 1, 1), (32, 1, 1))


def test_a_launch_that_needs_the_script_s_functions_says_so():
    tuned(params={"block_size_x": [32]}, grid_div_x=[lambda p: p["block_size_x"]])
    with pytest.raises(
        InputError, match="computed grid_x with functions: give grid_div_x and the like as expr"
    ):
        autotune.best_config("vector_add", x=SIZE).launch(x=SIZE)


def test_a_result_is_loaded_from_the_file_that_the_script_gave(tmp_path, recwarn):
    (tmp_path / "own.cl").write_text(ADD)
    tuned("own.cl", params={"block_size_x": [32]})
    c, a, b, _ = arguments()
    autotune.load_kernel("vector_add")(c, a, b, x=SIZE)
    assert np.array_equal(c, a + b)
    with pytest.raises(InputError, match=r"of shape \(999,\); for other sizes, write a space: autotune new$"):
        autotune.load_kernel("vector_add")(c[1:], a, b, x=SIZE)
    assert not [one for one in recwarn if "stale" in str(one.message)]


def shaped(size, extra=0.0, shape=None, source="own.cl"):
    """Tune an addition of a number for a size, as a script does; return its arrays."""
    a = np.random.default_rng(1).random(shape or size, dtype=np.float32)
    given = [np.zeros_like(a), a, np.float32(extra), np.int32(size)]
    tune_kernel("add", source, size, given, {"block_size_x": [32]}, quiet=True)
    return given[:2]


@pytest.fixture
def add_file(tmp_path):
    (tmp_path / "own.cl").write_text(
        "__kernel void add(__global float *c, __global const float *a, float extra, int n) {"
        " int i = get_group_id(0) * block_size_x + get_local_id(0); if (i < n) c[i] = a[i] + extra; }"
    )


def test_shapes_and_scalars_of_a_script_belong_to_its_sizes(add_file):
    c, a = shaped(1000, 0.5)
    shaped(512, 0.25)
    add = autotune.load_kernel("add")
    with pytest.raises(InputError, match=r"argument_0: expected float32 of shape \(512,\), .* write a space"):
        add(c, a, x=512)
    with pytest.raises(
        InputError, match=r"for x=512 and x=1000 only; for x=100, run the script at these sizes"
    ):
        add(c, a, x=100)
    assert not c.any()
    add(c, a)  # whose shapes give the size
    assert np.array_equal(c, a + np.float32(0.5))
    add(c[:512], a[:512])
    assert np.array_equal(c[:512], a[:512] + np.float32(0.25))
    add(c[:512], a[:512], argument_2=2.0)
    assert np.array_equal(c[:512], a[:512] + np.float32(2))
    with pytest.raises(
        InputError, match=r"no result fits arrays .*, argument_0 of \(7,\); tuned for x=512 a"
    ):
        add(c[:7], a[:7])
    first = autotune.best_config("add", x=1000)
    assert [one.shape or one.value for one in first.arguments(x=1000)] == [(1000,), (1000,), 0.5, 1000]


def test_arrays_of_one_shape_for_several_sizes_do_not_give_the_size(add_file):
    c, a = shaped(1000)
    shaped(500, shape=1000)
    with pytest.raises(InputError, match=r"several results fit arrays of these shapes.*; pass x="):
        autotune.load_kernel("add")(c, a)


def test_another_scalar_for_the_same_sizes_is_refused_before_it_runs(add_file):
    shaped(1000, 0.5)
    stored = next(Path("cache").glob("*/add.json")).read_text()
    with pytest.raises(
        InputError, match=r"for x=1000 whose argument_2 is float32 0.5; here it is float32 0.25"
    ):
        shaped(1000, 0.25)
    with pytest.raises(InputError, match=r"argument_0 is float32 of shape \(1000\); here it is .* \(2000\)"):
        shaped(1000, 0.5, shape=2000)
    assert next(Path("cache").glob("*/add.json")).read_text() == stored


def test_an_older_file_has_the_arguments_of_its_newest_result(add_file):
    shaped(1000, 0.5)
    c, a = shaped(512, 0.25)
    path = next(Path("cache").glob("*/add.json"))
    content = json.loads(path.read_text())
    for number, entry in enumerate(content["entries"]):  # in the order of their sizes
        del entry["arguments"]
        entry["provenance"]["tuned_at"] = f"2026-01-0{2 - number}T00:00:00+00:00"
    path.write_text(json.dumps(content))
    add = autotune.load_kernel("add")
    add(c, a)
    assert np.array_equal(c, a + np.float32(0.25))
    assert autotune.best_config("add", x=1000)["block_size_x"] == 32
    with pytest.raises(InputError, match="for x=512 only; for x=1000"):
        autotune.best_config("add", x=1000).arguments(x=1000)


def test_a_file_of_the_kernel_s_name_is_its_source_only_if_the_script_gave_it(tmp_path):
    own = tmp_path / "vector_add.cl"
    own.write_text(ADD.replace("+", "*"))
    tuned()
    assert not newest("vector_add").record.source
    tuned("vector_add.cl", answer=None)
    assert newest("vector_add").record.source == "../vector_add.cl"


def test_a_function_makes_the_source_and_words_are_values():
    def source(params):
        return ADD.replace("float", params["kind"]).replace("block_size_x", str(params["block_size_x"]))

    params = {"block_size_x": [32], "kind": ["float", "const float"]}
    results, _ = tuned(source, params, lang="OpenCL", defines={})
    assert [row["kind"] for row in results] == ["float", "const float"]
    assert "__error__" in results[1] and "time" in results[0]


def test_an_objective_is_a_metric():
    metrics = {"cost": lambda p: -p["block_size_x"]}
    _, env = tuned(metrics=metrics, objective="cost", objective_higher_is_better=False)
    assert env["best_config"]["block_size_x"] == 64


def test_what_is_not_replaced_is_kernel_tuner_s_own():
    assert autotune.kernel_tuner.util is kernel_tuner.util
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        autotune.kernel_tuner.nothing  # noqa: B018


def test_a_strategy_may_be_given_as_its_module():
    assert search_options(random_sample, None, 0, 9) == search_options("random_sample", None, 0, 9)


def test_a_fraction_is_a_budget_and_what_has_no_effect_is_told():
    with pytest.warns(UserWarning, match="^strategy_options without effect: popsize$"):
        found = search_options("random_sample", {"fraction": 0.5, "popsize": 3}, 0, 9)
    assert found.budget.trials == 5
    assert search_options("random_sample", {"fraction": 0.5, "max_fevals": 2}, 0, 9).budget.trials == 2


def test_a_search_of_the_whole_space_knows_its_number_of_trials():
    assert search_options(None, None, 0, 9).budget == Budget(trials=9)
    assert search_options("mls", {"time_limit": 5}, 0, 9).budget == Budget(seconds=5)


def test_constant_memory_is_copied_to_its_symbol():
    found = read_arguments(arguments(), "vector_add", ADD, {"d_filter": np.ones(3, np.float32)})
    assert (found.specs[-1].symbol, found.specs[-1].shape, found.specs[-1].role) == ("d_filter", ("3",), "in")
    assert len(found.outputs(found.arrays, {})) == 4


def test_a_strategy_keeps_to_its_budget():
    params = {"block_size_x": [32, 64], "other": list(range(40))}
    results, _ = tuned(params=params, strategy="random_sample", strategy_options={"max_fevals": 2})
    assert len(results) == 2


def test_a_tunable_precision_chooses_among_arrays_and_its_error_is_observed():
    source = ADD.replace("float", "real")
    given = arguments()
    precise = [np.asarray(value, np.float64) for value in given[:3]]
    chosen = [TunablePrecision("real", value, ["float", "double"]) for value in precise]
    answer = [precise[1] + precise[2], None, None, None]
    params = {"block_size_x": [32], "real": ["float", "double"]}
    observer = AccuracyObserver("max", "error")
    call = ("vector_add", source, SIZE, [*chosen, given[3]], params)
    results, _ = tune_kernel(*call, answer=answer, observers=[observer], quiet=True)
    assert [row["real"] for row in results] == ["float", "double"]
    assert results[0]["error"] > results[1]["error"] == 0


def test_what_a_tunable_chose_is_compared_with_the_answer():
    chosen = TunablePrecision("real", np.ones(3), ["float", "double"])
    answer = [np.full(3, 2.0)]
    request = read_request(
        KernelCall("k", "", 3, [chosen], {"real": ["float", "double"]}, answer=answer, lang="OpenCL")
    )
    assert [step.arguments for step in request.space.spec.launch] == [("argument_0_0",), ("argument_0_1",)]
    verify = request.space.spec.functions.verify
    arrays = {"argument_0_0": np.full(3, 2, np.float32), "argument_0_1": np.full(3, 2.5)}
    assert verify(Config({"real": "float"}), arrays)
    assert not verify(Config({"real": "double"}), arrays)
    other = read_request(
        KernelCall("k", "", 3, [chosen], {"real": ["float", "double"]}, answer=[np.ones(3)], lang="OpenCL")
    )
    assert other.digest != request.digest


def test_a_script_with_functions_finds_its_journal_again():
    def digest():
        of_functions = {"restrictions": [lambda p: True], "defines": {"block_size_x": lambda p: 32}}
        params = {"block_size_x": [32]}
        return read_request(KernelCall("vector_add", ADD, SIZE, arguments(), params, **of_functions)).digest

    assert digest() == digest()


def test_another_verify_is_another_search():
    def digest(verify):
        call = KernelCall("vector_add", ADD, SIZE, arguments(), {"block_size_x": [128]}, verify=verify)
        return read_request(call).digest

    def strict(answer, result, atol):
        return False

    lenient = lambda answer, result, atol: True  # noqa: E731
    assert digest(strict) == digest(strict)
    assert len({digest(strict), digest(lenient), digest(None)}) == 3


def test_run_kernel_returns_the_arguments_as_the_kernel_leaves_them():
    given = arguments()
    params = {"block_size_x": 64, "nvml_gr_clock": 1200}  # a clock is set for timing only
    c, a, _, n = run_kernel("vector_add", ADD, SIZE, given, params)
    assert np.array_equal(c, given[1] + given[2]) and np.array_equal(a, given[1]) and n == SIZE
    assert not given[0].any()


def test_run_kernel_takes_a_row_of_results():
    _, env = tuned(metrics={"GFLOP/s": lambda row: SIZE / row["time"] / 1e6})
    c, a, b, _ = run_kernel("vector_add", ADD, SIZE, arguments(), env["best_config"])
    assert np.array_equal(c, a + b)


def test_run_kernel_says_why_a_kernel_does_not_run():
    with pytest.raises(SetupError, match="vector_add: compile_error"):
        run_kernel("vector_add", "#error no\n" + ADD, SIZE, arguments(), {"block_size_x": 64})


def test_the_names_of_clock_and_power_limit_set_those_of_the_gpu():
    params = {"block_size_x": [32], "nvml_gr_clock": [1200, 1500], "nvml_pwr_limit": [400]}
    request = read_request(KernelCall("vector_add", ADD, SIZE, arguments(), params))
    assert request.space.spec.device == {"sm_clock_mhz": "nvml_gr_clock", "power_limit_w": "nvml_pwr_limit"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lang": "Fortran"}, "lang 'Fortran' is not supported: kernels of OpenCL and CUDA are"),
        ({"source": "void f() {}"}, "neither __kernel nor __global__ is in the source"),
        ({"source": ["a.cu", "b.cu"]}, "expected the kernel's own source, found a list"),
        ({"cmem_args": {"d": 1}}, "cmem_args: only CUDA has them; pass the array as a `__constant` argument"),
        ({"texmem_args": {"d": 1}}, "texmem_args is not supported: pass the array as an argument"),
        ({"observers": [1]}, "observers: int is not supported, .*; autotune run --profile ncu profiles one"),
        ({"observers": [NVMLObserver(["mem_freq"])]}, "observers: NVMLObserver: mem_freq is not supported"),
        ({"observers": [NVMLObserver(["nvml_energy"])]}, "observers: NVMLObserver: .* is no GPU of NVIDIA"),
        ({"platform": 1}, "platform is not supported: leave it out"),
        ({"strategy": "genetic"}, "strategy: 'genetic' is unknown"),
        (
            {"answer": [None]},
            "answer: expected 4 elements ",
        ),
        ({"restrictions": ["block_size_x is 3"]}, "restrictions: .*write it as a function: lambda p: ..."),
        ({"restrictions": ["block_size_z == 3"]}, "restrictions: unknown name 'block_size_z'"),
        ({"params": {"a b": [1]}}, "tune_params: 'a b': expected a name"),
        ({"params": {"time": [1, 2]}}, "tune_params: time: results have this name"),
        ({"params": {"timestamp": [1, 2]}}, "tune_params: timestamp: results have this name"),
        ({"params": {"grid_size_x": [1, 2]}}, "tune_params: grid_size_x: results have this name"),
        ({"params": {"nvml_mem_clock": [1]}}, "tune_params: nvml_mem_clock is not supported"),
        ({"params": {"a": []}}, "tune_params: a: expected at least one value"),
        ({"grid_div_x": ["block_size_q"]}, "problem_size, grid_div: name 'block_size_q' is not defined"),
        ({"defines": {"a b": 1}}, "defines: name is not a valid identifier: a b"),
        ({"compiler_options": ["-I/tmp x"]}, "compiler_options: '-I/tmp x' is not supported"),
        ({"simulation_mode": True}, "simulation_mode: needs cache="),
    ],
)
def test_what_is_not_supported_says_so_in_one_line_before_anything_runs(options, message, tmp_path):
    with pytest.raises(InputError, match=message) as caught:
        tuned(**options)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("problem_size", "grid_div", "grid"),
    [
        (1000, (None, None, None), (16, 1, 1)),
        ((1000, 10), (["block_size_x", "tile"], None, None), (4, 10, 1)),
        ("tile * 3", ([], None, None), (12, 1, 1)),
        (("tile * 3", 5), (None, ["tile"], None), (1, 2, 1)),
        (lambda p: (p["tile"], 8, 9), ([], 2, lambda p: p["tile"] / 2), (4, 4, 5)),
        ((100,), ("block_size_x / 2", None, None), (4, 1, 1)),
    ],
)
def test_the_grid_is_the_problems_size_over_its_divisors(problem_size, grid_div, grid):
    rule = LaunchRule(problem_size, grid_div, ("block_size_x", "block_size_y", "block_size_z"))
    assert rule.grid({"block_size_x": 64, "tile": 4}) == grid


@pytest.mark.parametrize(
    ("problem_size", "grid_div", "expressions"),
    [
        (1000, (None, None, None), ("ceil_div(x, block_size_x)", "1", "1")),
        ((1000, 10), (["block_size_x", "tile"], None, 1), ("ceil_div(x, block_size_x * tile)", "y", "1")),
        (
            ("tile * 3", 5),
            ([], ["tile / 2", 2], None),
            ("floor(tile * 3)", "ceil_div(5, floor(tile / 2) * 2)", "1"),
        ),
        (1000, ("word", lambda p: 1, None), (None, None, "1")),
    ],
)
def test_the_grid_is_an_expression_that_gives_the_same(problem_size, grid_div, expressions):
    params = read_parameters({"block_size_x": [64], "tile": [5], "word": ["a"]})
    rule = LaunchRule(problem_size, grid_div, ("block_size_x", "block_size_y", "block_size_z"))
    found = rule.expressions(params)
    assert tuple(found.get(f"grid_{axis}") for axis in "xyz") == expressions
    assert [found[f"block_{axis}"] for axis in "xyz"] == ["block_size_x", "1", "1"]
    if all(expressions):
        values = {"x": 1000, "y": 10, **params.first}
        assert tuple(parse(text)(values) for text in expressions) == rule.grid(params.first)


@pytest.mark.parametrize(
    "restriction",
    [
        "a * b <= 8",
        lambda p: p["a"] * p["b"] <= 8,
        lambda a, b: a * b <= 8,
        (lambda a: a <= 2, ["a"]),
    ],
)
def test_restrictions_of_every_kind(restriction):
    parameters = read_parameters({"a": [1, 2, 4], "b": [4]})
    holds = read_restriction(restriction, parameters)
    assert [holds({"a": a, "b": 4}) for a in (1, 2, 4)] == [True, True, False]


@pytest.mark.parametrize(("names", "is_fast"), [((8, 16), True), ((8.0, 16.0), False)])
def test_no_block_is_larger_than_the_device_allows(names, is_fast):
    """A Python function is called for every combination; an expression is not."""
    params = {"block_size_x": list(names), "block_size_y": [1, 8192]}
    request = read_request(KernelCall("vector_add", ADD, SIZE, arguments(), params))
    assert {config["block_size_y"] for config in request.space.bind(request.device).space} == {1}
    assert (not request.space.spec.functions.constraints) is is_fast


def test_arguments_are_inputs_where_the_signature_says_const():
    found = read_arguments(arguments(), "vector_add", ADD)
    assert [one.role for one in found.specs] == ["inout", "in", "in", "scalar"]
    unknown = read_arguments(arguments(), "other", ADD)
    assert [one.role for one in unknown.specs] == ["inout", "inout", "inout", "scalar"]


class OnDevice:
    """An array as cupy has it: no numpy function takes it before `get`."""

    __cuda_array_interface__ = ()

    def __init__(self, value):
        self.value = value

    def get(self):
        return self.value

    def __array__(self, *_, **__):
        raise TypeError("call get()")


def test_arguments_and_the_answer_may_be_arrays_of_a_device():
    c, a, b, n = arguments()
    given, answer = [*map(OnDevice, (c, a, b)), n], [OnDevice(a + b), None, None, None]
    params = {"block_size_x": [32]}
    found = read_request(KernelCall("vector_add", ADD, SIZE, given, params, answer=answer))
    assert np.array_equal(found.arguments.arrays["argument_1"], a)
    assert np.array_equal(found.space.spec.functions.reference({}, {})["argument_0"], a + b)


def test_arrays_of_other_types_come_back_as_they_were():
    pairs = np.array([1 + 2j, 3 - 1j], np.complex64)
    records = np.array([(1, 2.5)], [("i", "i4"), ("x", "f4")])
    found = read_arguments([pairs, records], "k", "")
    assert [one.dtype for one in found.specs] == ["complex64", "uint8"]
    back = found.outputs(found.arrays, {})
    assert np.array_equal(back[0], pairs) and back[1] == records


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            [np.int32(1), 1.5],
            r"number 1: expected an array, or a scalar such as numpy.int32\(1\); found float",
        ),
        ([np.float32("nan")], "number 0 is nan"),
    ],
)
def test_arguments_that_no_kernel_has_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        read_arguments(given, "k", "")


def test_a_header_of_a_script_s_source_is_part_of_every_configuration(tmp_path):
    (tmp_path / "h.h").write_text("#define SUM(a, b) a + b\n")
    answer = [sum(arguments()[1:3]), None, None, None]
    source = '#include "h.h"\n' + ADD.replace("a[i] + b[i]", "SUM(a[i], b[i])")
    tuned(source, answer=answer)
    (tmp_path / "h.h").write_text("#define SUM(a, b) a - b\n")
    with pytest.raises(SetupError, match=r"vector_add\.cl:3: the default configuration fails"):
        tuned(source, answer=answer)
