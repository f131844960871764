"""The report in a browser: charts draw, filters and clicks work, nothing is loaded, and it is accessible."""

import json
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from autotune.core.records import Config
from autotune.core.timeline import Span, chrome_trace
from autotune.core.trials import Failure, Measurement, Rule, Status, Trial
from autotune.evaluation.journal_rows import encode_measurement
from autotune.report.gather import gather
from autotune.report.search_page import report_html
from autotune.serving import cache
from tests.cache_example import DEFAULT, DEVICE, entry, record
from tests.conftest import LIMIT_S
from tests.unit.test_search_page import HOSTILE, journal, trial

SIZES = {"desktop": (1300, 900), "phone": (390, 800)}


def trials(rates):
    """Three parameters; a wide block with many elements cannot be launched."""
    for number in range(180):
        block, work, layout = (
            32 << number % 6,
            1 << number // 6 % 5,
            ("plain", "padded", HOSTILE)[number // 30 % 3],
        )
        config = Config({"BLOCK": block, "WORK": work, "LAYOUT": layout, "FAST": number >= 90})
        key, cost = f"{number:032x}", {"compile_ms": 300.0, "cost_s": 0.5, "registers": 16 + work}
        if block * work > 8192:
            yield Trial(config, key, Failure(Status.LAUNCH_ERROR, HOSTILE), **cost)
        else:
            time_ms = rates * (1 + abs(block - 256) / 100 + 3 / work + (layout == "plain"))
            yield Trial(config, key, measurement=Measurement((time_ms,) * 6, Rule.STEADY), **cost)


def worked(path):
    """The file of a timeline."""
    spans = [
        Span("search", 0.0, 9.0, 1, HOSTILE, "MainThread"),
        Span("wait: verify and time", 1.0, 4.0, 1, HOSTILE, "MainThread"),
        Span("verify and time", 1.1, 3.9, 2, "device process", "MainThread"),
    ]
    path.write_text(chrome_trace(spans))
    return path


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A folder without journals: a search of `reduce` in the current one would be shown, too."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The report of two devices."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOTUNE_CACHE", str(folder / "cache"))
        names = [
            journal(folder / f"{name}.jsonl", list(trials(rate)), device=f"GPU {name}")
            for name, rate in (("A", 1.0), ("B", 2.0))
        ]
        texts = dict.fromkeys(("origin", "config", "verdict", "reason", "helps"), HOSTILE)
        known = {"problem": "n1000.int32", "time_ms": 2.0, "uses": [HOSTILE], "foretold": [HOSTILE * 9]}
        kept = json.dumps({"schema": 1, "diagnosis": texts | known})
        (folder / "double.gpu-a.diagnosis.json").write_text(kept)
        html = report_html(gather(names), worked(folder / "timeline.json"))
    file = folder / "report.html"
    file.write_text(html)
    return file


@pytest.fixture
def opened(chromium, page):
    """The report in the browser; afterwards its console has no error and nothing was requested."""
    show(chromium, page)
    yield chromium
    errors = [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"]
    assert not errors
    own = ("file:", "data:", "blob:", "chrome:")  # the last is the browser's page for new tabs
    assert not [url for url in requested(chromium) if not url.startswith(own)]


def show(browser, file: Path, *, width=1300, height=900, dark=False):
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    device = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(file.as_uri())


def requested(browser):
    for one in browser.get_log("performance"):
        message = json.loads(one["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            yield message["params"]["request"]["url"]


def shown(browser):
    """How many trials pass the filters."""
    return int(
        re.match(r"([\d,]+) of", browser.execute_script("return count.textContent"))[1].replace(",", "")
    )


def scroll_through(browser):
    """Bring every chart into sight once, and wait until it is drawn."""
    browser.execute_async_script(
        """
        const done = arguments[0], charts = [...document.querySelectorAll("canvas")];
        const next = () => {
          const chart = charts.find((one) => !one.dataset.drawn);
          if (!chart) return done();
          chart.scrollIntoView({block: "center"});
          setTimeout(next, 30);
        };
        next();
        """
    )


def wait_until(browser, condition):
    """Wait for a condition in the page's script."""
    wait_for(browser, lambda one: one.execute_script(f"return {condition}"))


def wait_for(browser, condition):
    """Wait until a condition of the browser holds; raises if no loaded machine takes that long."""
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(browser, LIMIT_S).until(condition)


def pointer(browser, chart, *places):
    """Press at the first place, in shares of the chart, move to the others and let go at the last."""
    from selenium.webdriver import ActionChains

    browser.execute_script("document.getElementById(arguments[0]).scrollIntoView({block: 'center'})", chart)
    wait_until(browser, f"document.getElementById('{chart}').dataset.drawn")
    element = browser.find_element("id", chart)
    size = element.size
    actions = ActionChains(browser, duration=20)
    for number, (across, down) in enumerate(places):
        x, y = (across - 0.5) * size["width"], (down - 0.5) * size["height"]
        actions.move_to_element_with_offset(element, x, y)
        if number == 0:
            actions.click_and_hold()
    actions.release().perform()


def drawn(browser, chart):
    """How many pixels of a canvas are not empty, and the sum of their colours."""
    return browser.execute_script(
        """
        const canvas = document.getElementById(arguments[0]);
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        let [count, sum] = [0, 0];
        for (let at = 0; at < data.length; at += 4) {
          sum += data[at] + 2 * data[at + 1] + 3 * data[at + 2];
          if (data[at + 3]) count++;
        }
        return [count, sum];
        """,
        chart,
    )


def written(browser, chart):
    """The texts that a chart writes when it is drawn anew."""
    browser.execute_script(
        """
        document.getElementById(arguments[0]).scrollIntoView();
        window.written = new Set();
        const [chart, write] = [arguments[0], CanvasRenderingContext2D.prototype.fillText];
        CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
          if (this.canvas.id === chart) window.written.add(text);
          return write.call(this, text, ...place);
        };
        document.getElementById("theme").click();
        """,
        chart,
    )
    wait_until(browser, "window.written.size")
    return set(browser.execute_script("return [...window.written]"))


CHARTS = {
    *("progress-chart", "costs", "timeline", "parallel", "scatter", "heat", "neighbours"),
    *("importance-chart", "effects", "resources-chart", "device-times", "beside-chart"),
}
CELLS = "return [...document.querySelectorAll('#trial-table td:nth-child(%d)')].map((one) => one.textContent)"
OPEN_TABLES = """
    const all = [...document.querySelectorAll("details")];
    all.forEach((one) => { one.open = true; one.dispatchEvent(new Event("toggle")); });
"""


def test_every_chart_draws(opened):
    scroll_through(opened)
    found = opened.execute_script("return [...document.querySelectorAll('canvas')].map((one) => one.id)")
    assert set(found) == CHARTS
    assert not [chart for chart in found if drawn(opened, chart)[0] < 500]


def test_no_change_of_the_best_is_said_to_be_invalid_where_all_were_tried(opened):
    scroll_through(opened)
    said = opened.execute_script("return document.getElementById('neighbours').closest('figure').textContent")
    assert "12 of 12 single changes were tried." in said


def test_every_chart_has_its_figures_in_a_table(opened):
    scroll_through(opened)
    opened.execute_script(OPEN_TABLES)
    empty = opened.execute_script(
        "return [...document.querySelectorAll('figure details')].some((one) => !one.querySelector('td'))"
    )
    assert not empty


def test_a_kernel_of_the_cache_has_no_progress(chromium, tmp_path):
    """A cache does not keep the order of trials."""
    best = Config({**DEFAULT, "BLOCK": 128})
    others = tuple((Config({**DEFAULT, "BLOCK": block}), block / 32) for block in (32, 256))
    known = replace(entry(64), config=best, time_ms=2.0, measured=others)
    larger = replace(entry(1024), work_bytes=4096.0)
    cache.store(tmp_path, DEVICE, record(replace(known, work_bytes=256.0), larger))
    file = tmp_path / "report.html"
    file.write_text(report_html(gather(["reduce"], tmp_path)))
    show(chromium, file)
    scroll_through(chromium)
    assert chromium.execute_script("return document.getElementById('progress')") is None
    assert chromium.execute_script("return document.querySelector('#headline .value').textContent") == "2 ms"
    details = chromium.execute_script(CELLS.replace("nth-child(%d)", "last-child"))
    assert details[1] == "a time of the search; the best takes 2 ms in the last round"
    said = "return document.getElementById(arguments[0] + '-said').textContent"
    assert "reduce of int32 on Example" in chromium.execute_script(said, "sweep")
    assert "memory of Example(R) GPU 100: 1.5 TB/s" in chromium.execute_script(said, "sweep-rate")
    errors = [one for one in chromium.get_log("browser") if one["level"] == "SEVERE"]
    assert not errors


@pytest.fixture
def settled(chromium, tmp_path, monkeypatch):
    """The report of a search whose first trial was faster than the best is in the last round, with a tie."""
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "cache"))
    times_ms = ((1, 1.0), (2, 1.5), (3, 1.4), (4, 4.0), (5, 1.7))
    tried = [trial(one, time_ms=time_ms) for one, time_ms in times_ms]
    finals = {
        tried[1].key: Measurement((2.0, 2.1, 2.2) * 4, Rule.LAST_ROUND),
        tried[2].key: Measurement((2.3, 2.4, 2.5) * 3, Rule.LAST_ROUND),
        tried[4].key: Measurement((2.5, 2.45, 2.2) * 4, Rule.LAST_ROUND),
    }
    file = tmp_path / "report.html"
    file.write_text(report_html(gather([journal(tmp_path / "a.jsonl", tried, finals)])))
    show(chromium, file)
    scroll_through(chromium)
    return chromium


CHART_TABLE = """
    const details = document.getElementById(arguments[0]).closest("figure").querySelector("details");
    details.open = true;
    details.dispatchEvent(new Event("toggle"));
    const rows = [...details.querySelectorAll("tbody tr")];
    return rows.map((row) => [...row.cells].map((one) => one.textContent));
"""


def test_a_time_of_the_search_below_the_best_is_shown_and_is_never_the_best(settled):
    """The search's clock and the last round's may differ; no trial is shown with the time of another."""
    below = "1 of the search is below the best, down to 1 ms, and was not timed again in the last round"
    said = "return document.getElementById(arguments[0] + '-said').textContent"
    assert below in settled.execute_script(said, "progress-chart")
    assert "Times are those of the search" in settled.execute_script(said, "effects")
    best = settled.execute_script(CHART_TABLE, "progress-chart")
    assert [row[:2] for row in best] == [["2", "2.1"]]
    effects = settled.execute_script(CHART_TABLE, "effects")
    assert [row[1] for row in effects] == ["1", "1.5", "1.4", "4", "1.7"]
    shown_ms = ["2.1", "2.45", "1, search only", "2.4", "4, search only"]
    assert settled.execute_script(CELLS % 2) == shown_ms


def test_a_tie_is_marked_wherever_it_is_shown(settled):
    assert settled.execute_script(CELLS % 3) == ["best", "tie", "not in it", "slower", "not in it"]
    heads = "return [...document.querySelectorAll('#headline th')].map((one) => one.textContent)"
    assert settled.execute_script(heads) == ["parameter", "best", "tie: trial 5"]
    settled.execute_script("document.querySelector('#trial-table tr:nth-child(2) button').click()")
    assert settled.find_element("id", "trial-title").text == "Trial 5: 2.45 ms (2.2 to 2.5), tie"


@pytest.mark.parametrize("width", [390, 1300])
def test_no_figure_of_the_last_round_is_cut(chromium, settled, width):
    """On a phone, figures have lines of their own."""
    device = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    figures = {
        "2.1 ms (2 to 2.2)",
        "2.45 ms (2.2 to 2.5); 1 to 1.25 x",
        "2.4 ms (2.3 to 2.5); 1.14 to 1.15 x",
    }
    assert figures <= written(chromium, "finalists")


def test_values_that_are_cut_do_not_look_alike(chromium, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "cache"))
    names = [
        f"{'coalesced_' * 6}{word}{'_of_the_tile' * 6}" for word in ("reads", "writes", "reads_and_writes")
    ]
    tried = [trial(one, time_ms=1.0 + one, config={"METHOD": name}) for one, name in enumerate(names)]
    file = tmp_path / "report.html"
    file.write_text(report_html(gather([journal(tmp_path / "a.jsonl", tried)])))
    show(chromium, file, width=390)
    assert len([text for text in written(chromium, "parallel") if "…" in text]) == len(names)
    cells = "[...document.querySelectorAll('#trial-table td bdi')]"
    said = chromium.execute_script(f"return {cells}.map((one) => [one.textContent, one.title])")
    assert len({text for text, _ in said}) == len(names) and {title for _, title in said} == {*names}


def test_the_median_of_two_trials_lies_between_them(chromium, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "cache"))
    pairs = ((1, 1, 1.0), (1, 2, 3.0), (2, 1, 5.0))
    tried = [trial(int(time_ms), config={"A": a, "B": b}, time_ms=time_ms) for a, b, time_ms in pairs]
    file = tmp_path / "report.html"
    file.write_text(report_html(gather([journal(tmp_path / "a.jsonl", tried)])))
    show(chromium, file)
    scroll_through(chromium)
    effects = chromium.execute_script(CHART_TABLE, "effects")
    assert [row[3] for row in effects] == ["2", "5"]  # of the two values of A


def test_the_last_round_is_drawn_with_its_intervals(settled):
    assert drawn(settled, "finalists")[0] > 500
    rows = settled.execute_script(CHART_TABLE, "finalists")
    assert [row[:4] for row in rows] == [
        ["trial 2, best", "2.1", "2", "2.2"],
        ["trial 5, tie", "2.45", "2.2", "2.5"],
        ["trial 3, left after 9 rounds", "2.4", "2.3", "2.5"],
    ]
    settled.execute_script(
        "document.querySelector('#trial-table button[aria-label=\"Open trial 2\"]').click()"
    )
    assert settled.find_element("id", "trial-title").text == "Trial 2: 2.1 ms (2 to 2.2)"


def test_each_time_of_a_trial_says_whether_it_is_of_the_search_or_of_the_last_round(settled):
    rows = settled.execute_script(CHART_TABLE, "finalists")
    assert [row[4:6] for row in rows] == [["\u2013", "1.5"], ["1 to 1.25", "1.7"], ["1.14 to 1.15", "1.4"]]

    def facts(trial):
        button = f"#trial-table button[aria-label='Open trial {trial}']"
        settled.execute_script(f'document.querySelector("{button}").click()')
        cells = "[...document.querySelectorAll('#trial-body td')].map((one) => one.textContent)"
        texts = settled.execute_script(f"return {cells}")
        settled.execute_script("document.getElementById('trial-close').click()")
        return {name: value for name, value in zip(texts[::2], texts[1::2], strict=True) if "time" in name}

    assert facts(5) | {"compile time (ms)": ""} == {
        "time in the last round (ms)": "2.45",
        "times the best in the last round": "1.167 (1 to 1.25)",
        "time in the search (ms)": "1.7",
        "compile time (ms)": "",
    }
    assert [name for name in facts(1) if "compile" not in name] == [
        "time in the search (ms)",
        "times the best in the search",
    ]


@pytest.mark.parametrize("width", [390, 1300])
def test_no_stage_is_cut(chromium, tmp_path, monkeypatch, width):
    """Those that are short beside all others are summed."""
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "cache"))
    path = journal(tmp_path / "a.jsonl", [trial(1), trial(2)])
    stages = {"last round: waiting for references": 2.0, "timing": 9.0, "checks": 0.0, "tiles": 0.01}
    with Path(path).open("a") as rows:
        rows.write(json.dumps({"stages": stages, "doubts": []}) + "\n")
    file = tmp_path / "report.html"
    file.write_text(report_html(gather([path])))
    show(chromium, file, width=width)
    said = {*stages, "2 shorter ones"} - {"checks", "tiles"}
    assert said == {text for text in written(chromium, "stages") if ":" in text or text in said}


def test_the_ladder_has_the_intervals_of_the_last_round(chromium, tmp_path, folder):
    folder.search("--budget", "30")
    (path,) = (folder.path / "runs").glob("double.*.jsonl")
    (search,) = gather([str(path)], tmp_path / "cache", folder.space).searches
    spread = encode_measurement(Measurement((1.0, 1.1, 1.2) * 4, Rule.LAST_ROUND))
    with path.open("a") as rows:  # the fake device's times have no spread
        rows.write(json.dumps({"finals": dict.fromkeys(search.finals, spread)}) + "\n")
    file = tmp_path / "report.html"
    file.write_text(report_html(gather([str(path)], tmp_path / "cache", folder.space)))
    show(chromium, file)
    scroll_through(chromium)
    rows = chromium.execute_script(CHART_TABLE, "ladder-chart")
    assert rows[-1][:2] == ["tuned", "1.1 ms (1 to 1.2)"]


def test_the_trials_keep_to_the_width_of_paper(chromium, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "cache"))
    names = [f"A_PARAMETER_WITH_A_NAME_{place}" for place in range(24)]
    tried = [
        trial(
            one, time_ms=1.0 + one, config={name: (one if place else 7) for place, name in enumerate(names)}
        )
        for one in range(4)
    ]
    file = tmp_path / "report.html"
    file.write_text(report_html(gather([journal(tmp_path / "a.jsonl", tried)])))
    show(chromium, file, width=1000)
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        width, room = chromium.execute_script("""
            const table = document.getElementById("trial-table");
            return [table.getBoundingClientRect().width, table.parentElement.clientWidth];
        """)
    finally:
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert width <= room + 1
    same = chromium.find_element("id", "same").text
    assert same == f"The same in all trials: {names[0]}=7"
    head = chromium.execute_script(
        "return [...document.querySelectorAll('#trial-table th')].map((one) => one.textContent)"
    )
    assert names[0] not in head and set(names[1:]) < set(head)


def test_brushing_filters_everything(opened):
    assert shown(opened) == 180
    scroll_through(opened)
    before = drawn(opened, "scatter")
    pointer(opened, "progress-chart", (0.1, 0.2), (0.5, 0.95))
    left = shown(opened)
    assert 0 < left < 180
    said = opened.execute_script("return document.querySelector('#trials .soft').textContent")
    assert said.endswith(f" of {left}")
    opened.execute_script("document.getElementById('scatter').scrollIntoView()")
    wait_for(opened, lambda browser: drawn(browser, "scatter") != before)
    opened.execute_script("clear.click()")
    assert shown(opened) == 180


def test_a_value_is_a_filter_and_so_is_a_cell_of_the_heat_map(opened):
    box = "#filter-values input[data-axis='p0'][data-place='0']"
    opened.execute_script(f'document.querySelector("{box}").click()')
    assert shown(opened) == 30
    opened.execute_script("clear.click()")
    pointer(opened, "heat", (0.5, 0.5))
    assert 0 < shown(opened) < 180


def test_what_fails_and_what_belongs_together_is_told(opened):
    cells = opened.execute_script(
        "return [...document.querySelectorAll('#failures td')].map((one) => one.textContent)"
    )
    assert cells[2] == "BLOCK=1024 with WORK=16: 6 of the 6, 100% of its trials against 3.3% overall"
    title = opened.execute_script("return document.querySelector('#matrix h3').textContent")
    assert re.fullmatch(
        r"Slowdown on another device: the best of (\S+) takes 1 times as long on (\S+) as the best of \2; "
        "the reverse 1 times",
        title,
    )


def test_failures_can_be_shown_alone(opened):
    opened.execute_script("document.querySelector('#failures button').click()")
    statuses = opened.execute_script(CELLS % 3)
    assert set(statuses) == {"launch error"} and len(statuses) == shown(opened)


def test_a_trial_opens_with_its_command_and_macros(opened):
    opened.execute_script("document.getElementById('open-best').click()")
    assert opened.execute_script("return document.getElementById('trial').open")
    texts = opened.execute_script(
        "return [...document.querySelectorAll('#trial pre')].map((one) => one.textContent)"
    )
    command, macros, config = texts
    assert command.startswith("autotune show '") and "BLOCK == 256" in command and "-DBLOCK=256" in macros
    assert json.loads(config)["BLOCK"] == 256
    opened.execute_script("document.getElementById('trial-close').click()")


def test_a_point_can_be_clicked_and_reached_by_keyboard(opened):
    from selenium.webdriver import Keys

    scroll_through(opened)
    chart = opened.find_element("id", "scatter")
    chart.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER)
    title = opened.execute_script("return document.getElementById('trial-title').textContent")
    assert opened.execute_script("return document.getElementById('trial').open") and title.startswith(
        "Trial "
    )


def test_the_table_sorts_and_downloads(opened):
    times = CELLS % 2
    first = [float(one) for one in opened.execute_script(times)]
    assert first == sorted(first) and len(first) == 50
    opened.execute_script("document.querySelectorAll('#trial-table th button')[1].click()")
    last = [float(one) for one in opened.execute_script(times)]
    assert last == sorted(last, reverse=True) and last[0] > first[-1]
    opened.execute_script("document.getElementById('next-page').click()")
    assert "51 to 100" in opened.execute_script("return document.querySelector('#trials .soft').textContent")


def test_another_search_can_be_chosen(opened):
    opened.execute_script("search.value = '1'; search.dispatchEvent(new Event('change'))")
    assert "GPU B" in opened.execute_script("return subtitle.textContent")
    scroll_through(opened)
    assert drawn(opened, "parallel")[0] > 500


def test_what_bounds_a_configuration_has_a_section(opened):
    assert "Share of each peak" in opened.find_element("id", "diagnosis").text


def test_hostile_texts_are_shown_and_nothing_more(opened):
    assert opened.title.startswith("double")
    opened.execute_script("document.querySelector('#failures button').click()")
    assert opened.execute_script("return document.querySelectorAll('script').length") == 2
    assert HOSTILE[:20] in opened.execute_script("return document.getElementById('trial-table').textContent")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_wider_than_the_window(chromium, page, size, dark):
    width, height = SIZES[size]
    show(chromium, page, width=width, height=height, dark=dark)
    scroll_through(chromium)
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= width
    theme = chromium.execute_script("return document.documentElement.dataset.theme")
    assert theme == ("dark" if dark else "light")


def require_accessible(browser):
    """Fail if axe finds a serious fault; the filters and one table, which all are alike, are opened first."""
    spec = find_spec("axe_selenium_python")
    if spec is None or spec.origin is None:
        pytest.skip("needs the package axe-selenium-python")
    scripts = sorted(Path(spec.origin).parent.rglob("axe.min.js"))
    browser.execute_script(
        "for (const one of [...document.querySelectorAll('details')].slice(0, 2)) one.open = true"
    )
    browser.execute_script(scripts[0].read_text())
    browser.set_script_timeout(120)
    found = browser.execute_async_script(
        "axe.run(document, {resultTypes: ['violations']}).then(arguments[0])"
    )
    serious = [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert not serious


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_serious_fault(chromium, page, dark):
    show(chromium, page, dark=dark)
    scroll_through(chromium)
    require_accessible(chromium)
