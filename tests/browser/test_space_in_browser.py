"""The page of a space in a browser: charts draw, filters apply, and it is accessible."""

from tests.browser.test_report_in_browser import drawn, require_accessible, scroll_through, show, shown

CHARTS = {"funnel-chart", "values-chart", "ties-chart", "parallel", "heat"}


def test_the_page_of_a_space(chromium, folder):
    done = folder.run("space", "double.yaml", "--device", "fake", "--report")
    assert done.returncode == 0, done.stderr
    show(chromium, folder.path / "space.html")
    scroll_through(chromium)
    found = chromium.execute_script("return [...document.querySelectorAll('canvas')].map((one) => one.id)")
    assert set(found) == CHARTS and not [chart for chart in found if drawn(chromium, chart)[0] < 500]
    chromium.execute_script("document.querySelector('#filter-values input').click()")
    assert 0 < shown(chromium) < 17
    require_accessible(chromium)
    chromium.execute_script("document.querySelector('#trial-table tbody button').click()")
    command = chromium.execute_script("return document.querySelector('#trial pre').textContent")
    assert command.startswith("autotune run ") and "A=" in command
    assert not [one for one in chromium.get_log("browser") if one["level"] == "SEVERE"]
