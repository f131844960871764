"""Draw the pictures of the report in docs/plots again, from the shipped cache and spaces.

    python benchmarks/report_pictures.py [-o docs/plots]

Needs Debian's chromium and chromium-driver, and the packages selenium and matplotlib.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from report_speed import chromium

from autotune.cli import main as autotune

ROOT = Path(__file__).parents[1]
CACHE = ["--cache", str(ROOT / "cache")]


def save_picture(browser: Any, page: Path, element: str, picture: Path) -> None:
    """Save one element of a page, found by a selector."""
    browser.get(page.as_uri())
    found = browser.find_element("css selector", element)
    browser.execute_script("arguments[0].scrollIntoView()", found)
    browser.execute_script("document.querySelector('.filters').remove()")  # it would cover the picture
    browser.implicitly_wait(20)
    browser.find_element("css selector", f"{element} canvas[data-drawn]")
    picture.write_bytes(found.screenshot_as_png)
    print(picture)


def main() -> None:
    """Write the pages, then take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", type=Path, default=ROOT / "docs/plots", help="folder (default %(default)s)")
    plots = parser.parse_args().o
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        space, report = Path(folder) / "space.html", Path(folder) / "report.html"
        autotune(["space", str(ROOT / "spaces/reduce.yaml"), "-d", "sm_90", "--report", "-o", str(space)])
        autotune(["report", "reduce", "-o", str(report), *CACHE])
        browser.set_window_size(1200, 1400)
        save_picture(browser, space, "#funnel figure", plots / "space-funnel.png")
        save_picture(browser, space, "#ties figure", plots / "space-ties.png")
        save_picture(browser, report, "#beside", plots / "beside.png")
        save_picture(browser, report, "figure:has(#parallel)", plots / "report.png")
        autotune(
            [
                "report",
                "--figure",
                "roofline",
                "bicgk",
                "--device",
                "nvidia-h200",
                "-o",
                str(plots / "roofline.png"),
                *CACHE,
            ]
        )


if __name__ == "__main__":
    main()
