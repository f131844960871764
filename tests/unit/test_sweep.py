"""A search of a range of sizes: what it tries, chooses, stores and says."""

import itertools
import json
import math

import pytest

from autotune import best_config
from autotune.cli.sizes import parse_sweep
from autotune.core.records import Tier
from autotune.core.trials import Problem
from autotune.errors import InputError
from autotune.plans import sweep, sweep_candidates
from autotune.plans.sweep import _in_order, _share, bind_sweep, halfway_tasks
from autotune.plans.sweep_candidates import SweepProblem
from autotune.problem.inputs import draw_inputs
from autotune.problem.workload import Array
from autotune.serving.cache import read_record
from autotune.tuning import limits
from autotune.tuning.journaled_task import with_journal
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import Target
from tests.conftest import KERNEL

MODEL = KERNEL.replace("A - 5", "A - (2 if n < 2000 else 5)")  # small sizes want another A than large ones


def trials(folder):
    return {path.name: path.read_text().count('{"trial"') for path in folder.path.glob("runs/*")}


def test_a_range_of_sizes_ends_in_variants_that_serve_what_lies_between(folder):
    folder.write(MODEL)
    command = ("--sweep", "n=500:8000:x4", "--budget", "30")
    found = folder.search(*command)
    assert [(one["sizes"]["n"], one["config"]) for one in found["results"]] == [
        (500, {"A": 2, "B": 0}),
        *((n, {"A": 5, "B": 0}) for n in (2000, 8000)),
    ]
    assert [one["resumed"] for one in found["results"]] == [0, 0, 0]
    (table,) = found["tables"]
    assert table["variants"] == [{"A": 5, "B": 0}, {"A": 2, "B": 0}]
    assert len(table["left_out"]) == 1
    served = {
        n: best_config("double", "fake-gpu", n=n, cache=folder.path / "cache") for n in (501, 1999, 500)
    }
    assert {n: (best["A"], best.match.tier) for n, best in served.items()} == {
        501: (2, Tier.INTERPOLATED),
        1999: (5, Tier.INTERPOLATED),
        500: (2, Tier.EXACT),
    }
    assert served[501].provenance.engine == "sweep"
    stored = json.loads(next(folder.path.glob("cache/*/double.json")).read_text())["variants"]
    assert [(sizes["n"], times) for sizes, times in stored[0]["halfway"]] == [
        (1000, [10.0, 1.0]),
        (4000, [1.0, None]),  # ten times as slow at 8,000: not tried at the next size
    ]
    counts = trials(folder)
    assert len(counts) == 5 and max(counts.values()) <= 20  # the others take part of the budget
    again = folder.run("search", "double.yaml", "--device", "fake", *command)
    assert (
        "int32: 2 variants for all sizes between; too few sizes to estimate their slowdown\n" in again.stdout
    )
    assert "   1  fastest at n=2,000 to n=8,000\n      A=5 B=0\n" in again.stdout
    assert "   2  fastest at n=500 to n=1,000\n      A=2 B=0\n" in again.stdout
    assert " known from the journals) in " in again.stdout
    assert trials(folder) == counts and again.stderr.count("continues ") == 5
    assert "sweep: last round at n=8000, int32, 3 of 3" in again.stderr


def test_a_sweep_tells_one_variant_and_one_problem_in_the_singular(folder):
    done = folder.run("search", "double.yaml", "--device", "fake", "--sweep", "n=500:2000:x2")
    assert "int32: 1 variant for all sizes between; " in done.stdout
    assert "known from the journals" not in done.stdout
    alone = folder.run("search", "double.yaml", "--device", "fake", "--sweep", "n=500:500:x2")
    assert ": 1 problem, " in alone.stdout


def test_a_sweep_warns_once_of_what_its_source_lacks(folder):
    folder.write(MODEL.replace("B", "0"))
    done = folder.run("search", "double.yaml", "--device", "fake", "--sweep", "n=500:8000:x4")
    assert done.stderr.count("B: declared, but not used") == 1, done.stderr


@pytest.mark.parametrize(("returned", "is_warned"), [("{}", True), ("{'w': inputs['w']}", False)])
def test_a_sweep_warns_if_no_output_was_compared(folder, returned, is_warned):
    (folder.path / "reference.py").write_text(f"def reference(inputs, sizes):\n    return {returned}\n")
    folder.edit(
        "name: y, dtype: int32, shape: [n], role: out",
        "name: w, dtype: int32, shape: [n], role: inout, fill: {copy: x}",
    )
    folder.edit("[x, y, n]", "[x, w, n]")
    folder.write("def double(grid, block, x, w, n):\n    return A + B\n")
    done = folder.run("search", "double.yaml", "--device", "fake", "--sweep", "n=500:2000:x2")
    assert done.returncode == 0, done.stderr
    assert ("warning no output was compared" in done.stdout) is is_warned


def test_a_sweep_says_what_no_time_was_left_for_in_its_last_rounds(folder, all_data_sets, monkeypatch):
    monkeypatch.setattr(limits, "MIN_CHECKS_S", 0.0)
    done = folder.run(
        "search", "double.yaml", "--device", "fake", "--sweep", "n=500:2000:x4", "--time", "0.001"
    )
    missed = "without many runs, 12 sets of data (no time was left)"
    assert f"warning: the best: checked {missed}\n" in done.stderr
    assert f"checks  {missed}: autotune check" in done.stdout
    entries = read_record(str(*(folder.path / "cache").glob("*/double.json"))).entries
    assert len(entries) == 2 and all(entry.provenance.checked["many runs"] for entry in entries)


def test_each_size_is_verified_on_fresh_inputs(folder):
    x = Array("x", "int32", (500,), "in", ("integers", -100, 100))
    known = draw_inputs(Problem({"n": 500}, "int32"), (x,))["x"][0]
    wrong = (
        f"""    if A == 5 and n >= 500 and x.view("int32")[0] != {known}:\n        y[0] ^= 1\n    return"""
    )
    folder.write(KERNEL.replace("    return", wrong))
    found = folder.search("--sweep", "n=500:2000:x4", "--budget", "18")
    assert len(found["results"]) == 2 and all(one["config"]["A"] in (4, 6) for one in found["results"])


def test_what_the_checks_find_wrong_once_is_stored_at_no_size(folder):
    shown = folder.path / "shown"
    is_shown = (
        f"""A == 5 and n == 17 and (x.view("int32")[:n] == 1).all() and not os.path.exists({str(shown)!r})"""
    )
    race = f"    if {is_shown}:\n        open({str(shown)!r}, 'w').close()\n        y[0] ^= 1\n    return"
    folder.write("import os\n" + KERNEL.replace("    return", race))
    found = folder.search("--sweep", "n=500:2000:x4", "--budget", "18")
    assert shown.exists() and [one["config"]["A"] in (4, 6) for one in found["results"]] == [True, True]


def test_candidates_that_no_time_was_left_to_check_are_checked_at_the_next_size(folder, monkeypatch):
    times_s = iter([0.0])  # for the checks of candidates
    monkeypatch.setattr(sweep, "checks_time_s", lambda _: next(times_s, math.inf))
    command = ("search", "double.yaml", "--device", "fake", "--sweep", "n=500:2000:x4", "--budget", "6")
    done = folder.run(*command)
    assert " checked without many runs" in done.stderr
    entries = read_record(str(*(folder.path / "cache").glob("*/double.json"))).entries
    assert len(entries) == 2 and not any(any(one.provenance.checked.values()) for one in entries)


def test_what_is_best_at_one_size_may_be_invalid_at_the_first(folder):
    folder.edit("  - A + B <= 7\n", "  - A <= 2 or n >= 2000\n")
    folder.edit("grid: [1]", "grid: ['1 if A <= 2 else n // (n // 2000)']")  # at n=500: division by zero
    found = folder.search("--sweep", "n=500:2000:x4", "--budget", "18")
    assert [one["config"]["A"] for one in found["results"]] == [2, 5]


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("n=2**10:2**14:x4", [1024, 4096, 16_384]),
        ("n=1_000:5000:x2", [1000, 2000, 4000, 5000]),
        ("n=100:300:+100", [100, 200, 300]),
        ("n=7:7:x2", [7]),
    ],
)
def test_a_range_runs_to_its_last_size(text, sizes):
    assert parse_sweep([text]) == [{"n": n} for n in sizes]


def test_a_list_has_any_sizes_and_each_of_them_once():
    assert parse_sweep(["n=24,1, 2**10,24"]) == [{"n": 24}, {"n": 1}, {"n": 1024}]
    assert parse_sweep(["n=7"]) == [{"n": 7}]


def test_sizes_of_a_file_belong_together_and_are_combined_with_those_of_other_words(tmp_path):
    file = tmp_path / "shapes.csv"
    file.write_text("N, K\n1536,7168\n\n2112, 2**9\n1536,7168\n")
    pairs = [{"N": 1536, "K": 7168}, {"N": 2112, "K": 512}]
    assert parse_sweep([str(file)]) == pairs
    assert parse_sweep([str(file), "M=1,16"]) == [{**pair, "M": m} for pair in pairs for m in (1, 16)]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "expected names of sizes"),
        ("N,K\n", "expected names of sizes"),
        ("1,2\n3,4\n", "expected names of sizes"),
        ("N,N\n3,4\n", "expected names of sizes"),
        ("N,K\n3\n", "expected 2 sizes in each line"),
        ("N,K\n3,x\n", "'x' is not a whole number"),
        ("N,K\n3,0\n", "expected sizes of at least 1"),
        ("device\n3\n", "device cannot be the name of a size"),
        ("n\n3\n", "n is in --size or another --sweep too"),
        (b"\xff\xfe", "cannot be read as a CSV file"),
        (None, "no such file; expected a CSV file of sizes"),
    ],
)
def test_a_file_that_has_no_sizes_is_refused(tmp_path, content, reason):
    file = tmp_path / "shapes.csv"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=f"--sweep .*shapes.csv: {reason}"):
        parse_sweep([str(file)], {"n"})


def test_a_size_is_written_like_those_of_a_range(folder):
    folder.search("--size", "n=2**10", "--budget", "3")
    assert best_config("double", "fake-gpu", n=1024, cache=folder.path / "cache").match.tier is Tier.EXACT
    for text in ("n=2**70", "n=0", "n=-4", "n=2^10", "n="):
        done = folder.run("search", "double.yaml", "--device", "fake", "--size", text)
        assert done.returncode == 2 and "expected NAME=NUMBER" in done.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *((text, "expected NAME=FIRST:LAST:STEP") for text in ("n=1:2", "n=1:8:2", "=1:8:x2", "n=")),
        ("n", "no such file; expected .*NAME=FIRST:LAST:STEP"),
        ("n=1,,2", "'' is not a whole number"),
        ("n=4:2:x2", "the first size, 4, is above the last one, 2"),
        ("n=2**12:2**10:x4", "the first size, 4,096, is above the last one, 1,024"),
        ("n=0:8:x2", "expected sizes of at least 1"),
        ("n=1:8:x1", "expected a step of at least x2"),
        ("n=1:8:+0", "expected a step of at least [+]1"),
        ("n=1:8:x1.5", "'1.5' is not a whole number"),
        ("n=2^10:2^18:x4", "'2\\^10' is not a whole number .*2[*][*]10"),
        ("n=1:2**70:x2", "not a whole number below"),
        ("device=1:2:x2", "device cannot be the name of a size"),
    ],
)
def test_another_range_is_refused(text, reason):
    with pytest.raises(InputError, match=f"--sweep.*{reason}"):
        parse_sweep([text])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--sweep", "n=1:2000:+1"), "expected at most 1,024 combinations of sizes"),
        (("--sweep", "n=1:999:+1", "--dtype", "int32,int64"), "has 1 to 1,024 combinations of sizes and"),
        (("--sweep", "n=1:4:x2", "--journal", "j.jsonl"), "leave out --journal"),
        (("--sweep", "n=1:4:x2", "--objective", "energy"), "leave out --objective"),
        (
            ("--sweep", "n=1:4:x2", "--engine", "surrogate", "--strategy", "brute"),
            "surrogate has no strategies",
        ),
        (("--sweep", "n=1:4:x2", "--engine", "random", "--stop-when-unlikely"), "cannot tell when to stop"),
        (("--variants", "3"), "only a sweep without --format chooses variants: leave out --variants"),
        (("--sweep", "m=1:4:x2"), "m"),
        (("--sweep", "n=1:4:x2", "--size", "n=8"), "n is in --size or another --sweep too; leave one out"),
    ],
)
def test_what_a_sweep_cannot_do_is_said_at_once(folder, arguments, reason):
    done = folder.run("search", "double.yaml", "--device", "fake", *arguments)
    assert done.returncode == 2 and reason in done.stderr and not (folder.path / "runs").exists()


@pytest.mark.parametrize("small", ["n < 1000", "n > 4000"])
def test_a_sweep_that_may_stop_tries_all_where_there_are_few(folder, small):
    folder.edit("  A: [1, 2, 3, 4, 5, 6]", f"  A: {[*range(1, 41)]}")
    folder.edit("A + B <= 7", f"A + B <= (3 if {small} else 41)")
    done = folder.search("--sweep", "n=500:8000:x4", "--budget", "30", "--stop-when-unlikely")
    assert [one["config"] for one in done["results"]].count({"A": 3, "B": 0}) == 1


def test_element_types_may_be_apart(folder):
    give_two_types(folder)
    found = folder.search("--sweep", "n=500:500:x4", "--budget", "6", "--dtype", " int32, int64,")
    assert [one["dtype"] for one in found["results"]] == ["int32", "int64"]


def problems_of(folder, count):
    """So many sizes, the smallest first."""
    folder.write(MODEL)
    sizes = [1024 * 4**place for place in range(count)]
    tasks = bind_sweep(Target(folder.path / "double.yaml", "fake"), [{"n": n} for n in sizes], [], Observer())
    return [SweepProblem(with_journal(task, Options())) for task in tasks]


@pytest.mark.parametrize(
    ("count", "order", "shares"),
    [
        (1, [0], [1]),
        (2, [0, 1], [1, 1 / 2]),
        (6, [3, 2, 4, 1, 0, 5], [1, 0.6, 1 / 6, 0.6, 0.6, 1 / 6]),
        (11, [5, 4, 6, 3, 7, 2, 8, 1, 9, 0, 10], [1, *[0.6, 0.1] * 5]),
    ],
)
def test_sizes_are_searched_from_the_middle_outwards_and_larger_ones_get_smaller_shares(
    folder, count, order, shares
):
    problems = problems_of(folder, count)
    found = _in_order(problems)
    assert [problems.index(one) for one in found] == order
    assert [_share(one, found[:place], count) for place, one in enumerate(found)] == shares


def halfway_of(folder, **sizes):
    points = [dict(zip(sizes, one, strict=True)) for one in itertools.product(*sizes.values())]
    tasks = bind_sweep(Target(folder.path / "double.yaml", "fake"), points, [], Observer())
    return [task.space.problem.sizes for task in halfway_tasks(tasks)]


def test_sizes_half_way_are_between_neighbours_where_the_default_is_valid(folder):
    assert halfway_of(folder, n=[500, 2000, 8000]) == [{"n": 1000}, {"n": 4000}]
    assert halfway_of(folder, n=[500]) == [] and halfway_of(folder, n=[7, 8, 10]) == [{"n": 9}]
    assert halfway_of(folder, n=[512, 1024, 4096]) == [{"n": 704}, {"n": 2048}]  # multiples of 64
    folder.edit("  - A + B <= 7\n", "  - A + B <= 7\n  - n % 500 == 0\n  - A == 1 or n != 4000\n")
    folder.edit("default: {A: 1", "default: {A: 2")
    assert halfway_of(folder, n=[500, 2000, 8000, 8500]) == [{"n": 1000}]


def test_several_sizes_that_vary_have_nothing_half_way(folder):
    folder.edit("{n: 1000}", "{n: 1000, m: 8}")
    assert halfway_of(folder, n=[500, 2000], m=[8, 32]) == []
    assert halfway_of(folder, n=[500, 2000], m=[8]) == [{"n": 1000, "m": 8}]


SHORT = ("--sweep", "n=500:2000:x4", "--budget", "18")


def test_a_fresh_sweep_of_an_edited_kernel_times_anew_half_way(folder):
    folder.search(*SHORT)
    journal = folder.path / "runs/double.fake-gpu.n1000.int32.jsonl"
    header = journal.read_text().splitlines()[0]
    folder.write(KERNEL + "# edited\n")
    assert "--fresh" in folder.run("search", "double.yaml", "--device", "fake", *SHORT).stderr
    folder.search(*SHORT, "--fresh")
    assert journal.read_text().splitlines()[0] != header and trials(folder)[journal.name] > 0


def test_a_fresh_sweep_starts_over_at_all_sizes_at_once(folder):
    folder.search(*SHORT)
    assert len(trials(folder)) == 3 and all(trials(folder).values())
    folder.write("def double(grid, block, x, y, n):\n    raise ValueError\n")
    assert folder.run("search", "double.yaml", "--device", "fake", *SHORT, "--fresh").returncode != 0
    assert [count for count in trials(folder).values() if count] == [1]  # the default, where it failed


def test_a_sweep_warns_of_noise_in_its_last_rounds(folder, whole_last_round):
    once = "import random\nif not hasattr(random, 'seeded'):\n    random.seed(5)\n    random.seeded = True\n"
    folder.write(once + KERNEL.replace("+ 1.0", "+ (random.lognormvariate(0, 3) if n == 2000 else 1.0)"))
    done = folder.run("search", "double.yaml", "--device", "fake", *SHORT)
    assert "warning the machine was unsteady in 1 of 2 last rounds: up to " in done.stdout


def test_a_sweep_after_a_size_was_renamed(folder):
    folder.search(*SHORT)
    folder.space.write_text(folder.space.read_text().replace("n: ", "k: ").replace("[n]", "[k]"))
    folder.edit("name: n, dtype: int32, value: n", "name: n, dtype: int32, value: k")
    folder.edit("8 * n", "8 * k")
    folder.search("--size", "k=700", "--fresh")
    kept = {"cache": folder.path / "cache"}
    assert best_config("double", "fake-gpu", k=800, **kept).match.tier is Tier.NEAREST_SIZE
    folder.search("--sweep", "k=500:2000:x4", "--budget", "18", "--fresh")
    assert best_config("double", "fake-gpu", k=800, **kept).match.tier is Tier.INTERPOLATED


WRONG_FOR_ZEROS = """\
def double(grid, block, x, y, n):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    if A in (%s) and not x.view("int32")[:n].any():
        y.view("int32")[:n] = 1
    return (A - 5) ** 2 + B + 1.0
"""


@pytest.mark.parametrize(
    ("wrong", "valid", "variants"),
    [
        ("2, 3, 4, 5, 6", "A + B <= 7", {1}),  # nothing but the default passes the checks before storing
        (
            "6,",
            "A in (1, 6) if n >= 2000 else A < 6 or n < 100",
            {1, 5},
        ),  # nothing but it at one of the sizes
    ],
)
def test_where_no_candidate_passes_the_checks_the_default_serves(folder, wrong, valid, variants):
    folder.write(WRONG_FOR_ZEROS % wrong)
    folder.edit("A + B <= 7", valid)
    done = folder.run("search", "double.yaml", "--device", "fake", *SHORT, "--json")
    assert done.returncode == 0, done.stderr
    assert {one["A"] for one in json.loads(done.stdout)["tables"][0]["variants"]} == variants


def test_a_variant_that_is_not_valid_half_way_is_served_where_it_is(folder):
    folder.write(KERNEL.replace("(A - 5) ** 2", "(0 if A == 6 else 0.2 if A == 5 else A)"))
    folder.edit("A + B <= 7", "A < 6 or n % 512 == 0")
    folder.search("--sweep", "n=512:4096:x2", "--budget", "60")
    served = {
        n: best_config("double", "fake-gpu", n=n, cache=folder.path / "cache")["A"] for n in (1408, 1536)
    }
    assert served == {1408: 5, 1536: 6}


def test_what_is_wrong_half_way_is_no_variant(folder):
    assert [one["A"] for one in folder.search(*SHORT)["tables"][0]["variants"]] == [5]
    folder.write(KERNEL.replace("    return", "    if A == 5 and n == 1000:\n        y[0] ^= 1\n    return"))
    found = folder.search(*SHORT, "--fresh")
    assert all(one["A"] in (4, 6) for one in found["tables"][0]["variants"])


def test_a_size_half_way_that_a_reference_refuses_is_left_out(folder):
    reference = folder.path / "reference.py"
    refused = "(inputs, sizes):\n    assert sizes['n'] != 1000, 'no such size'\n"
    reference.write_text(reference.read_text().replace("(inputs, sizes):\n", refused))
    done = folder.run("search", "double.yaml", "--device", "fake", *SHORT)
    assert done.returncode == 0, done.stderr
    assert "warning: n=1000, int32, half-way between two sizes, is not timed: " in done.stderr
    assert "no such size" in done.stderr
    stored = json.loads(next(folder.path.glob("cache/*/double.json")).read_text())
    assert len(stored["entries"]) == 2 and "halfway" not in stored["variants"][0]


def test_a_sweep_does_not_start_from_what_it_timed_half_way(folder):
    folder.edit("  A: [1, 2, 3, 4, 5, 6]", f"  A: {[*range(1, 41)]}")
    folder.edit("A + B <= 7", "A + B <= 41")
    folder.write(KERNEL.replace("A - 5", "A - 33"))
    command = ("--sweep", "n=500:32000:x4", "--budget", "24", "--engine", "surrogate")
    folder.search(*command)
    counts = trials(folder)
    folder.search(*command)
    assert trials(folder) == counts


TWO_TYPES = """\
def double(grid, block, x, y, n):
    is_wide = x.size > 4 * n
    view = "int64" if is_wide else "int32"
    y.view(view)[:n] = 2 * x.view(view)[:n]
    steps = abs(A - 6) + abs(B - 1)
    return 0.1 if steps == 0 else 1.0 + steps if is_wide else 8.0 - steps  # int32 is led away from the best
"""


def give_two_types(folder):
    folder.write(TWO_TYPES)
    folder.edit("dtypes: [int32]", "dtypes: [int32, int64]")
    folder.edit("x, dtype: int32", "x, dtype: DTYPE")
    folder.edit("y, dtype: int32", "y, dtype: DTYPE")


SIX_TRIALS = ("--sweep", "n=500:8000:x4", "--engine", "surrogate", "--budget", "6")


def test_an_element_type_starts_from_the_results_of_those_before_it(folder):
    give_two_types(folder)
    folder.edit("  A: [1, 2, 3, 4, 5, 6]", f"  A: {[*range(1, 41)]}")
    folder.edit("A + B <= 7", "A + B <= 41")
    folder.write(TWO_TYPES.replace("A - 6", "A - 30").replace("8.0", "80.0"))
    command = ("--sweep", "n=500:8000:x4", "--engine", "surrogate", "--budget", "24", "--fresh", "--dtype")
    alone, both = (folder.search(*command, types) for types in ("int32", "int64,int32"))
    best = {"A": 30, "B": 1}
    assert all(one["config"] != best for one in alone["results"])
    assert [one["config"] for one in both["results"]] == [best] * 6
    assert all(table["variants"] == [best] for table in both["tables"])


def test_a_sweep_warns_if_its_variants_replace_those_of_a_wider_range(folder):
    command = ("search", "double.yaml", "--device", "fake", "--budget", "6", "--sweep")
    for sizes, is_warned in (("n=500:8000:x4", False), ("n=500:8000:x2", False), ("n=500:2000:x2", True)):
        told = "replace those of a wider one: n=500 to n=8000, int32"
        assert (told in folder.run(*command, sizes).stderr) is is_warned


def test_a_sweep_beside_many_other_results_resumes_exactly(folder):
    """Its own journals must not take the places of the others, from which its first search started."""
    give_two_types(folder)
    folder.edit("  A: [1, 2, 3, 4, 5, 6]", f"  A: {[*range(1, 41)]}")
    folder.edit("A + B <= 7", "A + B <= 41")
    engine = ("--engine", "surrogate", "--dtype")
    folder.search("--sweep", "n=500:128000:x2", "--budget", "6", *engine, "int64")
    command = ("--sweep", "n=500:32000:x4", "--budget", "24", *engine, "int32")
    folder.search(*command)
    counts = trials(folder)
    folder.search(*command)
    assert trials(folder) == counts


def test_what_is_far_slower_at_a_size_is_not_tried_at_the_next(folder, monkeypatch):
    folder.edit("  A: [1, 2, 3, 4, 5, 6]", f"  A: {[*range(1, 41)]}")
    folder.edit("A + B <= 7", "A + B <= 41")
    folder.write(KERNEL.replace("(A - 5) ** 2 + B", "abs(A - (3 if n < 2000 else 35)) / 20 + B"))
    command = ("--sweep", "n=500:32000:x4", "--budget", "24", "--fresh")
    folder.search(*command)
    few = sum(trials(folder).values())
    monkeypatch.setattr(sweep_candidates, "FAR_SLOWER", math.inf)
    folder.search(*command)
    assert few < sum(trials(folder).values())


def test_a_default_that_fails_for_a_later_element_type_keeps_the_results_of_the_earlier_one(folder):
    give_two_types(folder)
    folder.write(TWO_TYPES.replace("    steps", "    assert not is_wide or n != 8000\n    steps"))
    done = folder.run("search", "double.yaml", "--device", "fake", *SIX_TRIALS, "--dtype", "int32,int64")
    assert done.returncode == 1 and "default" in done.stderr, done.stderr
    stored = json.loads(next(folder.path.glob("cache/*/double.json")).read_text())
    assert {entry["dtype"] for entry in stored["entries"]} == {"int32"}
    assert [table["dtype"] for table in stored["variants"]] == ["int32"]


def test_a_further_element_type_gets_the_same_shares_but_for_its_first_size(folder):
    give_two_types(folder)
    sizes = [{"n": 1000 * 4**place} for place in range(6)]
    tasks = bind_sweep(Target(folder.path / "double.yaml", "fake"), sizes, ["int32", "int64"], Observer())
    problems = [SweepProblem(with_journal(task, Options())) for task in tasks]
    assert {_share(one, problems[:6], 6) for one in problems[6:]} == {0.6}
    shares = [_share(one, [*problems[:6], problems[9]], 6) for one in problems[6:]]
    assert shares == [0.6, 0.6, 0.6, 0.6, 1 / 6, 1 / 6]
