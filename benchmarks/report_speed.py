"""How long `autotune report` takes for an exhaustive search of the reduction, and how its page answers.

Also how long `autotune report --live` takes to show a trial that a search has just recorded.

    python benchmarks/report_speed.py [TRIALS]

Writes a journal of made-up times for every valid configuration on an H200 (as the shipped cache describes
it), makes the report, and opens it in Chromium (Debian's chromium and chromium-driver, and the package
selenium). The figures depend on the machine, so none of them is a test.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from autotune.cli import main as autotune
from autotune.core.records import Config
from autotune.core.trials import Failure, Measurement, Rule, Status, Trial
from autotune.evaluation.identity import sizes_text
from autotune.evaluation.journal import Journal
from autotune.report.folder import ExploredFolder
from autotune.report.server import ExploreServer
from autotune.serving.device_records import device_records
from autotune.space import bind, load_space, problem_of

ROOT = Path(__file__).parents[1]
COUNT = "return document.getElementById('count').textContent"
BRUSH = """
const chart = document.getElementById("parallel"), box = chart.getBoundingClientRect();
const at = (type, x, y) => chart.dispatchEvent(new PointerEvent(type,
  {clientX: box.left + x, clientY: box.top + y, pointerId: 1, button: 0, pointerType: "touch"}));
const began = performance.now();
at("pointerdown", 30, box.height - 200);
at("pointerup", 60, box.height - 20);
return performance.now() - began;
"""


def made_up_journal(path: Path, most: int | None) -> int:
    """A journal with every valid configuration, a tenth of them failed; returns how many there are."""
    device = next(known.device for known in device_records("reduce", ROOT / "cache"))
    spec = load_space(ROOT / "spaces/reduce.yaml")
    problem = problem_of(spec, device)
    space = bind(spec, device, problem)
    random_numbers = random.Random(0)
    header = {
        "device": device.name,
        "verification": "3",
        "kernel": spec.kernel,
        "sizes": sizes_text(problem.sizes),
        "dtype": problem.dtype,
    }
    configs = list(space)[:most]
    random_numbers.shuffle(configs)
    journal = Journal(path, header)
    for number, config in enumerate(configs):
        journal.append(_trial(number, config, random_numbers))
    journal.close()
    return len(configs)


def _trial(number: int, config: Config, random_numbers: random.Random) -> Trial:
    registers = 16 + 4 * int(config["UNROLL"]) + 2 * int(config["VECTOR_WIDTH"])
    base_ms = 0.12 * (1 + abs(int(config["BLOCK_SIZE"]) - 256) / 512) * (1 + 2 / int(config["VECTOR_WIDTH"]))
    if random_numbers.random() < 0.1:
        failure = Failure(random_numbers.choice([Status.COMPILE_ERROR, Status.TIMEOUT]), "made up")
        return Trial(config, f"{number:032x}", failure, compile_ms=300.0, cost_s=0.5)
    samples = tuple(base_ms * random_numbers.uniform(1.0, 1.2) for _ in range(10))
    return Trial(
        config,
        f"{number:032x}",
        measurement=Measurement(samples, Rule.STEADY),
        compile_ms=random_numbers.uniform(200, 600),
        cost_s=random_numbers.uniform(0.3, 1.0),
        registers=registers,
        spill_bytes=0,
        shared_bytes=4 * int(config["BLOCK_SIZE"]),
    )


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,900"):
        options.add_argument(flag)
    with tempfile.TemporaryDirectory() as profile:
        options.add_argument(f"--user-data-dir={profile}")
        browser = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        try:
            yield browser
        finally:
            browser.quit()


def opening_and_brushing(browser: Any, page: Path) -> None:
    """Print how long the page takes to open and how long a brush takes to be answered."""
    browser.get(page.as_uri())
    opened_ms = browser.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd")
    print(f"opened: {opened_ms:.0f} ms until everything on the screen is drawn")
    browser.execute_script("document.getElementById('parallel').scrollIntoView()")
    time.sleep(1)
    answers = [browser.execute_script(BRUSH) for _ in range(5)]
    said = browser.execute_script(COUNT)
    print(f"brushed: {', '.join(f'{one:.0f}' for one in answers)} ms, leaving {said}")


def following(browser: Any, folder: Path, trials: int) -> None:
    """Print how long a new trial takes to be shown, for a journal of so many trials."""
    path = folder / "live.jsonl"
    made_up_journal(path, trials)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-5]))
    taken_s = []
    with ExploreServer(ExploredFolder(folder), 0) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        browser.get(f"{server.url}report?source=live.jsonl")
        for line in lines[-5:]:
            before = browser.execute_script(COUNT)
            began = time.perf_counter()
            with path.open("a") as file:
                file.write(line)
            while browser.execute_script(COUNT) == before:
                time.sleep(0.02)
            taken_s.append(time.perf_counter() - began)
        server.shutdown()
    print(f"live, {trials:,} trials: shown after {', '.join(f'{one:.2f}' for one in taken_s)} s")


def main() -> None:
    """Make, open, brush."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("most", nargs="?", type=int, help="so many trials (default: the whole space)")
    most = parser.parse_args().most
    with tempfile.TemporaryDirectory() as folder:
        journal, page = Path(folder) / "reduce.jsonl", Path(folder) / "report.html"
        count = made_up_journal(journal, most)
        print(f"{count:,} trials, a journal of {journal.stat().st_size / 1e6:.1f} MB")
        began, began_cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        code = autotune(["report", str(journal), "-o", str(page), "--cache", str(ROOT / "cache")])
        taken_cpu = resource.getrusage(resource.RUSAGE_SELF)
        cpu_s = taken_cpu.ru_utime - began_cpu.ru_utime
        print(f"written: {time.perf_counter() - began:.1f} s ({cpu_s:.1f} s of CPU), exit code {code}")
        print(f"size: {page.stat().st_size / 1e6:.2f} MB")
        with chromium() as browser:
            opening_and_brushing(browser, page)
            for trials in (200, 2000):
                following(browser, Path(folder), trials)


if __name__ == "__main__":
    main()
