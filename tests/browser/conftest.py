"""A headless Chromium; the tests are skipped with the reason where there is none."""

import shutil

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1300,900",
)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """One browser for all tests, with its console recorded."""
    selenium = pytest.importorskip("selenium.webdriver", reason="needs the package selenium")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs Debian's chromium and chromium-driver")
    options = selenium.ChromeOptions()
    options.binary_location = program
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = selenium.Chrome(options=options, service=selenium.ChromeService(driver))
    yield browser
    browser.quit()
