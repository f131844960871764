"""Figures: they say what the numbers say, take any text, and the same input gives the same bytes."""

import json
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.cli.report import FIGURES as OFFERED
from autotune.core.trials import Measurement, Rule, Status
from autotune.evaluation.journal_rows import encode_measurement
from autotune.report.figures import Bar, Line, Side, bar_chart, matrix, over_size, progress, roofline, save
from autotune.report.gather import gather
from autotune.report.plots import KINDS
from tests.conftest import ROOT, run_in_process
from tests.recorded_files import T4
from tests.unit.test_search_page import HOSTILE, journal, trial

STEPS = [
    {"step": "first", "time_ms": 4.0, "status": "ok", "detail": ""},
    {"step": "failed", "time_ms": None, "status": "timeout", "detail": "took 10 s"},
    {"step": "tuned best", "time_ms": 1.0, "status": "ok", "detail": ""},
]


def texts(path):
    found = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(one.itertext()) for one in found]


def plot(*arguments):
    return run_in_process(ROOT, "report", "--figure", *map(str, arguments))


@pytest.fixture
def searched(tmp_path, monkeypatch):
    """Two journals of one kernel, for two devices and two sizes each."""
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "cache"))
    trials = [trial(n, time_ms=1 + n % 7 + n / 90, config={"A": n % 7, "B": n // 7}) for n in range(42)] + [
        trial(99, Status.CRASHED, detail="no", config={"A": 9, "B": 9})
    ]
    return [
        journal(tmp_path / "a.jsonl", trials, device="GPU A"),
        journal(tmp_path / "b.jsonl", trials, device="GPU B"),
    ]


@settings(max_examples=15)
@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=12))
def test_bars_are_as_long_as_their_values_on_either_axis(times_ms):
    figure = bar_chart("ladder", [Bar(f"step {n}", time_ms, "") for n, time_ms in enumerate(times_ms)])
    (axes,) = figure.axes
    found = [bar.get_width() for bar in axes.patches]
    for (short_ms, short), (long_ms, long) in pairwise(sorted(zip(times_ms, found, strict=True))):
        assert (short_ms < long_ms) == (short < long)
    wide = max(times_ms) > 20 * min(times_ms)
    assert (axes.get_xscale() == "log") == wide == ("logarithmic" in axes.get_xlabel())
    assert axes.get_xlim()[0] <= min(times_ms) and max(times_ms) <= axes.get_xlim()[1]


def test_any_text_is_drawn_as_it_stands(tmp_path):
    save(bar_chart(HOSTILE, [Bar("$x_1^2$ <b>", 1, "$", strong=True)]), tmp_path / "a.svg")
    found = texts(tmp_path / "a.svg")
    assert "$x_1^2$ <b>" in found and "$" in found and any(one.startswith("</script>") for one in found)


def test_a_matrix_leaves_unknown_cells_empty(tmp_path):
    figure = matrix("m", Side("rows", ["a", "b"]), Side("columns", ["c", "d"]), [[1.0, None], [3.5, 2.0]])
    save(figure, tmp_path / "a.svg")
    found = texts(tmp_path / "a.svg")
    assert [one for one in found if one in ("1", "3.5", "2")] == ["1", "3.5", "2"] and "nan" not in found


def test_the_line_of_progress_is_the_best_so_far():
    (axes,) = progress("p", [5.0, None, 7.0, 3.0]).axes
    line = next(one for one in axes.lines if one.get_label() == "best so far")
    assert list(line.get_xdata()) == [1, 3, 4] and list(line.get_ydata()) == [5.0, 5.0, 3.0]
    assert "failed" in [one.get_label() for one in axes.collections]


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_the_same_input_gives_the_same_bytes(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    found = []
    for _ in range(2):
        save(bar_chart("t", [Bar("a", 1, "1 ms")]), path)
        found.append(path.read_bytes())
    assert found[0] == found[1] and len(found[0]) > 1000


def test_the_command_offers_every_kind():
    assert tuple(KINDS) == OFFERED


@pytest.mark.parametrize(
    ("kind", "count", "words"),
    [
        ("progress", 1, ["best so far", "failed"]),
        ("heat-map", 1, ["A", "B"]),
    ],
)
def test_kinds_of_a_journal(searched, tmp_path, kind, count, words):
    done = plot(kind, *searched[:count], "-o", tmp_path / "x/a.svg")
    assert done.returncode == 0, done.stderr
    found = texts(tmp_path / "x/a.svg")
    assert not [word for word in words if word not in found]


def test_a_heat_map_of_named_parameters(tmp_path):
    parameters = ("--x", "block_size_x", "--y", "block_size_y")
    done = plot("heat-map", T4, *parameters, "-o", tmp_path / "a.svg")
    assert done.returncode == 0 and {"block_size_x", "block_size_y"} <= set(texts(tmp_path / "a.svg"))


def test_a_roofline_has_the_memorys_ceiling(tmp_path):
    done = plot("roofline", "reduce", "--cache", "cache", "-o", tmp_path / "a.svg")
    assert done.returncode == 2 and "or one file" in done.stderr  # the cache has two problems of it
    of_gpu = ("bicgk", "--cache", "cache", "--device", "nvidia-h200")
    done = plot("roofline", *of_gpu, "-o", tmp_path / "a.svg")
    assert done.returncode == 0, done.stderr
    assert "memory, 4.814 TB/s" in texts(tmp_path / "a.svg")


def test_a_printed_ladder_is_drawn(tmp_path):
    (tmp_path / "steps.json").write_text(json.dumps(STEPS))
    done = plot("ladder", tmp_path / "steps.json", "--title", "steps", "-o", tmp_path / "a.svg")
    assert done.returncode == 0, done.stderr
    found = texts(tmp_path / "a.svg")
    assert "1 ms, 4 x" in found and "failed" not in found and "steps" in found


def test_a_ladder_has_the_intervals_of_the_last_round(tmp_path, searched_folder):
    (path,) = (searched_folder.path / "runs").glob("double.*.jsonl")
    keys = gather([str(path)], tmp_path / "cache", searched_folder.space).searches[0].finals
    spread = encode_measurement(Measurement((1.0, 1.1, 1.2) * 4, Rule.LAST_ROUND))
    with path.open("a") as rows:  # the fake device's times have no spread
        rows.write(json.dumps({"finals": dict.fromkeys(keys, spread)}) + "\n")
    done = plot(
        "ladder",
        path,
        "--space",
        searched_folder.space,
        "--cache",
        tmp_path / "cache",
        "-o",
        tmp_path / "a.svg",
    )
    assert done.returncode == 0, done.stderr
    assert any(text.startswith("1.1 ms (1 to 1.2), ") for text in texts(tmp_path / "a.svg"))
    (axes,) = bar_chart("ladder", [Bar("a", 1.0, "", interval=(0.9, 1.2)), Bar("b", 2.0, "")]).axes
    (_, _, (lines,)) = axes.containers[0].lines
    assert [segment[:, 0].tolist() for segment in lines.get_segments()] == [[0.9, 1.2], [2.0, 2.0]]


def test_a_ladder_that_is_nested_too_deeply_is_told(tmp_path):
    (tmp_path / "steps.json").write_text("[" * 100_000)
    done = plot("ladder", tmp_path / "steps.json", "-o", tmp_path / "a.svg")
    assert done.returncode == 2 and "steps.json: not JSON: nested too deeply" in done.stderr


def test_the_shipped_figures_are_what_the_command_makes():
    """Each ladder in the guides has its figures beside it."""
    drawn = {path.stem for path in (ROOT / "docs/plots").glob("*.svg")}
    assert drawn == {path.stem for path in (ROOT / "docs/plots").glob("*.json")}
    for name in drawn:
        steps = json.loads((ROOT / f"docs/plots/{name}.json").read_text())
        found = texts(ROOT / f"docs/plots/{name}.svg")
        assert not [step["step"] for step in steps if step["step"] not in found]


def test_no_line_runs_through_a_label():
    bars = bar_chart("ladder", [Bar("a", 1.0, "1 ms, 1 x"), Bar("b", 0.1, "0.1 ms, 10 x")])
    assert not any(line.get_visible() for line in bars.axes[0].get_xgridlines())
    lines = [Line("first", [1, 2], [1, 2]), Line("second", [1, 2], [2, 1])]
    for figure in (
        progress("trials", [3.0, None, 1.0]),
        roofline("rates", [(1.0, 1e9), (2.0, 2e9)], (2.0, 2e9), 1e10, {"float32": 6.6908e13}),
        over_size("sizes", lines, size="n"),
    ):
        figure.canvas.draw()
        (legend,) = [one.get_legend() for one in figure.axes if one.get_legend()]
        assert all(legend.get_window_extent().y1 < one.get_window_extent().y0 for one in figure.axes)


def test_rates_have_the_unit_that_suits_them():
    figure = roofline("rates", [(1.0, 1e9), (2.0, 2e9)], (2.0, 2e9), 4.8139e12, {"float32": 6.6908e13})
    said = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert said[2:] == ["memory, 4.814 TB/s", "float32, 66.91 TFLOP/s"]


def test_one_of_several_sizes_can_be_chosen(tmp_path):
    at = ("bicgk", "--cache", "cache", "--device", "cpu-skylake-avx512-intel-xeon-processor")
    assert plot("roofline", *at, "--size", "rows=8_192", "-o", tmp_path / "a.svg").returncode == 0
    assert any("rows=8,192" in text for text in texts(tmp_path / "a.svg"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ladder", T4), "no landmark"),
        (("roofline", T4), "needs the bytes and flops"),
        (("heat-map", T4, "--x", "nothing"), "two parameters that vary"),
        (("heat-map", T4, "--x", "blok_size_x"), "; blok_size_x is none of them; did you mean block_size_x?"),
        (
            ("heat-map", T4, "--x", "block_size_x", "--y", "block_size_x"),
            "are both block_size_x; ",
        ),
        (("progress", T4, "--x", "block_size_x"), "--x and --y are for --figure heat-map"),
        (
            ("roofline", "bicgk", "matadd", "--cache", "cache", "--device", "nvidia-h200"),
            "; name one kernel",
        ),
        (("progress", "README.md"), "not JSON"),
        (("progress", "nested_reduce", "--cache", "cache"), "name a journal"),
        (("roofline", "bicgk", "--cache", "cache"), "name one with --device and --size"),
        (
            ("roofline", "bicgk", "--cache", "cache", "--size", "rows=5"),
            "no results for it; expected one of columns=8192, rows=8192; ",
        ),
        (("roofline", "bicgk", "--cache", "cache", "--device", "H100"), "no results for this device; "),
    ],
)
def test_what_cannot_be_drawn_is_told(tmp_path, arguments, said):
    done = plot(*arguments, "-o", tmp_path / "a.svg")
    assert done.returncode == 2 and said in done.stderr and not (tmp_path / "a.svg").exists()
