"""The built site: every page fits and is accessible, on a desktop and a phone, light and dark."""

from pathlib import Path

import pytest

from tests.browser.test_report_in_browser import SIZES, require_accessible, show

SITE = Path(__file__).parents[2] / "site"
# index.html only leads on to README.html
PAGES = [page for page in sorted(SITE.rglob("*.html")) if page.name != "index.html"]


@pytest.mark.wide
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("width", "height"), SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_fits_and_axe_finds_no_serious_fault(chromium, page, width, height, dark):
    show(chromium, page, width=width, height=height, dark=dark)
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= width
    require_accessible(chromium)
