"""`autotune report --live` in a browser: a live search, and two searches side by side."""

import pytest

from tests.browser.test_report_in_browser import (
    CELLS,
    drawn,
    require_accessible,
    scroll_through,
    shown,
    wait_for,
    wait_until,
)
from tests.conftest import KERNEL
from tests.unit.test_live_report import HELD, served
from tests.unit.test_search_page import HOSTILE, journal, trial

ROWS = """
    const rows = [...document.querySelectorAll("#beside-table tr")];
    return rows.map((row) => [...row.cells].map((one) => one.textContent));
"""


@pytest.fixture
def site(chromium, folder):
    """The address of the folder's pages; afterwards the browser's console has no error."""
    with served(folder.path) as ask:
        chromium.get_log("browser")
        yield f"http://127.0.0.1:{ask.port}"
        chromium.get("about:blank")
    assert not [one for one in chromium.get_log("browser") if one["level"] == "SEVERE"]


def counted(browser):
    return browser.execute_script(
        "return !document.getElementById('chips').closest('.of-search').hidden"
    ) and (shown(browser))


def test_a_running_search_is_followed_and_choices_stay(chromium, site, folder):
    folder.write(HELD + KERNEL)  # the ninth configuration is compiled once the page has shown others
    chromium.get(site)
    options = ("--engine", "exhaustive", "--compile-timeout", "600", "--quiet")
    search = folder.start("search", "double.yaml", "--device", "fake", *options)
    try:
        wait_until(chromium, "document.querySelector('main a')")
        chromium.execute_script("document.querySelector('main a').click()")
        wait_for(chromium, lambda browser: counted(browser) >= 4)
        chromium.execute_script("""
            const select = document.getElementById("progress-chart-over");
            select.value = "elapsed";
            select.dispatchEvent(new Event("change"));
            document.querySelector("#filter-values input[data-axis='p1']").click();
        """)
        before = chromium.execute_script("return document.querySelectorAll('#trial-table tbody tr').length")
        (folder.path / "seen").touch()
        wait_for(
            chromium,
            lambda browser: len(browser.execute_script(CELLS % 1)) > before and drawn(browser, "scatter"),
        )
        assert (
            chromium.execute_script("return document.getElementById('progress-chart-over').value")
            == "elapsed"
        )
        assert "B: 0" in chromium.execute_script("return document.getElementById('chips').textContent")
    finally:
        search.terminate()
        search.communicate()


def test_a_hostile_file_name_is_shown_and_nothing_more(chromium, site, folder):
    name = """<img src=x onerror="document.title='owned'">'&amp;\u202e.jsonl"""
    journal(folder.path / name, [trial(1)], kernel=HOSTILE)
    chromium.get(site)
    wait_until(chromium, "document.querySelector('#journals a')")
    assert "<img src=x" in chromium.execute_script("return document.querySelector('#journals a').textContent")
    chromium.execute_script("document.querySelector('#journals a').click()")
    wait_until(chromium, "document.getElementById('parallel') || document.getElementById('trial-table')")
    assert chromium.title != "owned" and not chromium.find_elements("css selector", "img")


def test_two_searches_are_side_by_side(chromium, site, folder):
    folder.search("--journal", "runs/a.jsonl", "--budget", "6")
    folder.search("--journal", "runs/b.jsonl", "--budget", "9", "--seed", "1")
    chromium.get(site)
    wait_until(chromium, "document.querySelectorAll('#journals input').length === 2")
    require_accessible(chromium)
    chromium.execute_script("""
        document.querySelectorAll("#journals input").forEach((one) => one.click());
        document.querySelector("#journals button").click();
    """)
    wait_until(chromium, "document.getElementById('beside-chart')")
    scroll_through(chromium)
    assert drawn(chromium, "beside-chart")[0] > 500
    require_accessible(chromium)
    rows = chromium.execute_script(ROWS)
    trials = next(row for row in rows if row[0] == "Trials")
    assert {one.split()[0] for one in trials[1:]} == {"6", "9"}
    assert any(row[0] == "A" and len(row) == 3 for row in rows)
