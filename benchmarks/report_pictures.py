"""Draw the pictures of the report in docs/plots again, from the shipped cache and spaces.

    python benchmarks/report_pictures.py

Needs Debian's chromium and chromium-driver, and the packages selenium and matplotlib.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from report_speed import chromium

from autotune.cli import main as autotune

ROOT = Path(__file__).parents[1]
PLOTS = ROOT / "docs/plots"
CACHE = ["--cache", str(ROOT / "cache")]


def picture(browser: Any, page: Path, element: str, name: str) -> None:
    """Save one element of a page, found by a selector."""
    browser.get(page.as_uri())
    found = browser.find_element("css selector", element)
    browser.execute_script("arguments[0].scrollIntoView()", found)
    browser.execute_script("document.querySelector('.filters').remove()")  # it would cover the picture
    browser.implicitly_wait(20)
    browser.find_element("css selector", f"{element} canvas[data-drawn]")
    (PLOTS / name).write_bytes(found.screenshot_as_png)
    print(PLOTS / name)


def main() -> None:
    """Write the pages, then take the pictures."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        space, report = Path(folder) / "space.html", Path(folder) / "report.html"
        autotune(["space", str(ROOT / "spaces/reduce.yaml"), "-d", "sm_90", "--report", "-o", str(space)])
        autotune(["report", "reduce", "-o", str(report), *CACHE])
        browser.set_window_size(1200, 1400)
        picture(browser, space, "#funnel figure", "space-funnel.png")
        picture(browser, space, "#ties figure", "space-ties.png")
        picture(browser, report, "#beside", "beside.png")
        picture(browser, report, "figure:has(#parallel)", "report.png")
        autotune(["plot", "roofline", "bicgk", "-o", str(PLOTS / "roofline.png"), *CACHE])


if __name__ == "__main__":
    main()
