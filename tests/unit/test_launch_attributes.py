"""Launches that repeat, cooperate or form clusters: in the plan, in the cache and on devices."""

import json
from dataclasses import replace

import pytest

from autotune.core.launch_plan import launches, needs_cuda
from autotune.core.records import Launch, LaunchSpec
from autotune.devices import backend
from autotune.errors import CacheError, SpaceError
from autotune.serving.cache_schema import parse_record, record_text
from autotune.space import bind, load_space, problem_of
from tests.cache_example import entry, record

STEP = LaunchSpec("step", ("4",), ("32",), ("a", "b", "n"))
PING_PONG = """\
def double(grid, block, x, y, n):
    x, y = x.view("int32")[:n], y.view("int32")[:n]
    y[:] = x + 1
    return 1.0 / A
"""
PLAN = "{entry: double, grid: [1], block: [1], arguments: [x, y, n]}"


def test_a_repeated_launch_exchanges_two_arrays():
    plan = [replace(STEP, repeat="N", swap=("a", "b")), replace(STEP, programmatic="N > 1")]
    steps = launches(plan, {"N": 3})
    assert [step.arguments for step in steps] == [
        ("a", "b", "n"),
        ("b", "a", "n"),
        ("a", "b", "n"),
        ("a", "b", "n"),
    ]
    assert [step.programmatic for step in steps] == [False, False, False, True]
    assert launches([replace(STEP, repeat="0")], {}) == ()


def test_attributes_are_evaluated_and_nothing_precedes_the_first_launch():
    step = replace(STEP, cooperative="A == 1", cluster=("A", "2"), programmatic="True")
    (found,) = launches([step], {"A": 1})
    assert found == Launch("step", (4, 1, 1), (32, 1, 1), 0, STEP.arguments, True, (1, 2, 1), False)
    assert needs_cuda(found).startswith("step: cooperative, cluster in the launch plan needs CUDA")
    assert needs_cuda(launches([STEP], {})[0]) == ""


def test_a_cache_whose_launches_have_streams_is_refused_in_one_line():
    plan = json.loads(record_text(record(entry(64))))
    plan["launch"][0]["stream"] = "1"
    with pytest.raises(CacheError, match=r"launch\[0\]\.stream: expected no such key, found '1'; restore"):
        parse_record(json.dumps(plan), "r.json")


def test_iterations_are_searched_and_verified(folder):
    folder.write(PING_PONG)
    (folder.path / "reference.py").write_text(
        "def reference(inputs, sizes):\n    return {'y': inputs['x'] + 5, 'x': inputs['x'] + 4}\n"
    )
    folder.edit("shape: [n], role: in,", "shape: [n], role: inout,")
    folder.edit(PLAN, PLAN[:-1] + ", repeat: 5, swap: [x, y]}")
    assert folder.search("--budget", "3")["counts"] == {"ok": 3}
    done = folder.run("best", "double", "--device", "fake", "--json")
    assert (
        done.returncode == 0 and '"repeat": "5"' in (folder.path / "cache/fake-gpu/double.json").read_text()
    )


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("swap: [x, y]", "launch[0]: swap exchanges two arrays in every other repetition: add repeat"),
        (
            "repeat: 2, swap: [x, y]",
            "launch[0].swap[0]: x has the role in: only arrays that a kernel writes can swap",
        ),
        ("repeat: 2, swap: [y, z]", "launch[0].swap[1]: 'z' is not among the launch's arguments"),
        ("repeat: 2, swap: [y]", "launch[0].swap: expected two arrays, found y"),
        ("coperative: true", "launch[0].coperative: unknown key; did you mean cooperative?"),
    ],
)
def test_a_mistake_is_named(folder, keys, message):
    folder.edit(PLAN, f"{PLAN[:-1]}, {keys}}}")
    with pytest.raises(SpaceError) as error:
        load_space(folder.space)
    assert message in str(error.value)


def test_opencl_has_no_configuration_with_attributes_and_clusters_divide_the_grid(folder):
    keys = "cooperative: A == 2 or B > 0, cluster: [A], grid: [12]"
    folder.edit(PLAN, f"{PLAN[:-1].replace('grid: [1], ', '')}, {keys}}}")
    spec = load_space(folder.space)
    fake = backend("fake").list_devices()[0]
    on_gpu = bind(spec, replace(fake, backend="cuda"), problem_of(spec, fake))
    assert {(config["A"], config["B"]) for config in on_gpu} == {
        (a, b) for a in (1, 2, 3, 4, 6) for b in (0, 1, 2) if a + b <= 7
    }
    on_opencl = bind(spec, replace(fake, backend="opencl"), problem_of(spec, fake))
    assert {(config["A"], config["B"]) for config in on_opencl} == {(1, 0)}
