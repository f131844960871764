"""The built site: pages fit and are accessible, on a desktop and a phone, light and dark."""

from pathlib import Path

import pytest

from tests.browser.test_report_in_browser import SIZES, require_accessible, show

SITE = Path(__file__).parents[2] / "site"
# index.html only leads on to README.html
PAGES = [page for page in sorted(SITE.rglob("*.html")) if page.name != "index.html"]


LOOKS = [(*size, dark) for size in SIZES.values() for dark in (False, True)]


@pytest.mark.wide
@pytest.mark.parametrize(
    ("page", "look"),
    [(page, LOOKS[number % len(LOOKS)]) for number, page in enumerate(PAGES)],  # they share one theme
    ids=lambda value: value.stem if isinstance(value, Path) else "-".join(map(str, value)),
)
def test_a_page_fits_and_axe_finds_no_serious_fault(chromium, page, look):
    width, height, dark = look
    show(chromium, page, width=width, height=height, dark=dark)
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= width
    require_accessible(chromium)


@pytest.mark.wide
@pytest.mark.parametrize("look", LOOKS, ids=lambda look: "-".join(map(str, look)))
def test_the_start_page_fits_and_is_accessible_in_every_look(chromium, look):
    test_a_page_fits_and_axe_finds_no_serious_fault(chromium, SITE / "README.html", look)
