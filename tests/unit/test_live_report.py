"""`autotune report --live`: what it serves of a folder, to whom, and that it serves nothing else."""

import json
import os
import re
import signal
import time
from contextlib import contextmanager
from html import unescape
from http.client import HTTPConnection
from threading import Thread

import pytest

from autotune.core.trials import Status
from autotune.errors import InputError
from autotune.evaluation.journal_rows import encode_trial
from autotune.report.folder import ExploredFolder
from autotune.report.server import ExploreServer
from autotune.serving import cache
from tests.cache_example import DEVICE, entry, record
from tests.cache_files import write
from tests.conftest import KERNEL, LIMIT_S, run_in_process
from tests.unit.test_search_page import HOSTILE, data_of, journal, trial

TRIALS = [trial(1, time_ms=3.0), trial(2, Status.TIMEOUT, detail=HOSTILE), trial(3, time_ms=2.0)]
HELD = """\
import os, pathlib, time

def compiling():
    with open("compiled", "a") as file:
        file.write("+")
    while os.path.getsize("compiled") > 8 and not pathlib.Path("seen").exists():
        time.sleep(0.01)

"""


@contextmanager
def served(folder):
    """A function that asks the server of a folder, and gives status, headers and text."""
    with ExploreServer(ExploredFolder(folder), 0) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

        def ask(path, method="GET", **headers):
            connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()

        ask.port = server.port
        yield ask
        server.shutdown()


@pytest.fixture
def shared(tmp_path):
    """A folder with two journals and a cache, beside a journal that is not in it."""
    folder = tmp_path / "shared"
    (folder / "runs").mkdir(parents=True)
    journal(folder / "runs" / "a.jsonl", TRIALS)
    journal(folder / "runs" / "b.jsonl", TRIALS, device="Other GPU")
    journal(tmp_path / "secret.jsonl", TRIALS, kernel="secret")
    cache.store(folder / "cache", DEVICE, record(entry(64)))
    return folder


def test_the_list_has_all_journals_and_cached_kernels(shared):
    (shared / "runs" / "notes.jsonl").write_text("{}\n")
    (shared / "runs" / "broken.jsonl").write_text('{"journal":1}\nnonsense\n{}\n')
    with served(shared) as ask:
        status, headers, html = ask("/")
    data = data_of(html)
    listed = {one["name"]: one for one in data["journals"]}
    assert status == 200 and "connect-src 'self'" in unescape(html)
    assert headers["X-Frame-Options"] == "DENY" and headers["Cache-Control"] == "no-store"
    assert listed["runs/a.jsonl"]["trials"] == 3 and listed["runs/a.jsonl"]["failed"] == 1
    assert "damaged" in listed["runs/broken.jsonl"]["unreadable"] and len(listed) == 3
    assert [one["name"] for one in data["cached"]] == ["cache:reduce"]


def test_the_kernel_that_was_tuned_last_comes_first(tmp_path):
    for kernel, age_s in (("add", 100), ("mine", 0), ("scale", 100)):
        write(tmp_path / "cache", DEVICE, record(entry(64), kernel=kernel))
        (path,) = tmp_path.glob(f"cache/*/{kernel}.json")
        os.utime(path, (1e9 - age_s, 1e9 - age_s))
    _, listed = ExploredFolder(tmp_path).index()
    assert [one["kernel"] for one in listed["cached"]] == ["mine", "add", "scale"]


def test_a_report_is_that_of_the_file(shared):
    with served(shared) as ask:
        both = data_of(ask("/report?source=runs/a.jsonl&source=runs/b.jsonl")[2])
        kernel = data_of(ask("/report?source=cache:reduce")[2])
    assert [search["device"] for search in both["searches"]] == ["Fake GPU", "Other GPU"]
    assert both["searches"][0]["columns"]["time_ms"] == [3, None, 2]
    assert kernel["searches"][0]["kernel"] == "reduce"


def test_new_trials_show_and_an_unchanged_search_is_not_sent_again(shared):
    with served(shared) as ask:
        first = json.loads(ask("/data?source=runs/a.jsonl")[2])
        stamp = first["live"]["stamp"]
        assert json.loads(ask(f"{first['live']['address']}&stamp={stamp}")[2]) == {"live": first["live"]}
        with (shared / "runs" / "a.jsonl").open("a") as file:
            file.write(json.dumps({"trial": encode_trial(trial(4, time_ms=1.0))}) + "\n")
        status, _, text = ask(f"{first['live']['address']}&stamp={stamp}")
    assert status == 200 and json.loads(text)["searches"][0]["columns"]["time_ms"] == [3, None, 2, 1]


def test_a_space_file_of_the_folder_gives_ladder_and_command(shared, folder):
    folder.search("--budget", "4", "--journal", shared / "runs" / "own.jsonl")
    with served(shared) as ask:
        before = data_of(ask("/report?source=runs/own.jsonl")[2])["searches"][0]
        for name in ("double.py", "reference.py", "double.yaml"):
            (shared / name).write_bytes((folder.path / name).read_bytes())
        (shared / "other.yaml").write_text("kernel: double\nschema: 1\n")  # not a space
        after = data_of(ask("/report?source=runs/own.jsonl")[2])["searches"][0]
    assert before["runCommand"] is None and not before["landmarks"]
    assert after["runCommand"].startswith("autotune run ") and after["landmarks"]


def test_a_search_that_has_just_begun_is_waited_for(shared):
    journal(shared / "runs" / "new.jsonl", [])
    with served(shared) as ask:
        status, _, text = ask("/data?source=runs/new.jsonl")
    assert status == 200 and "holds no trial" in json.loads(text)["message"]


def test_a_search_is_told_to_run_with_its_time_left_and_then_to_be_dead_or_done(folder):
    folder.write(HELD + KERNEL)
    options = ("--engine", "exhaustive", "--budget", "14", "--compile-timeout", "600", "--quiet")
    with served(folder.path) as ask:

        def states(said):
            """The states of the journal, once one says this."""
            for _ in range(int(LIMIT_S / 0.05)):
                path = next(folder.path.glob("runs/*.jsonl"), None)
                status, _, text = ask(f"/data?source=runs/{path.name}") if path else (404, None, "")
                if status == 200 and said in str(found := json.loads(text)["live"]["states"]):
                    return found
                time.sleep(0.05)
            raise AssertionError(text)

        killed = folder.start("search", "double.yaml", "--device", "fake", *options)
        (running,) = states(" of 14 trials")
        assert re.fullmatch(r"Running: \d+ of 14 trials, .+, \d+:\d\d left", running)
        os.kill(killed.pid, signal.SIGKILL)
        killed.communicate()
        (dead,) = states("died")
        assert re.match(r"The search's process has died: \d+ of 14 trials, ", dead)
        (folder.path / "seen").touch()
        folder.search(*options)
        assert states("Done") == ["Done"]
        assert not list(folder.path.glob("runs/.*"))


def test_a_search_that_was_ended_early_is_not_said_to_be_done(shared):
    with served(shared) as ask:
        (state,) = json.loads(ask("/data?source=runs/a.jsonl")[2])["live"]["states"]
        both = json.loads(ask("/data?source=runs/a.jsonl&source=runs/b.jsonl")[2])["live"]["states"]
    assert state.startswith("Ended before its last round")
    assert both == [f"runs/{name}.jsonl: {state}" for name in "ab"]


@pytest.fixture
def outside(shared, tmp_path):
    """Links that lead out of the folder: to a journal, to its folder, and from a cache."""
    (shared / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (shared / "linked").symlink_to(tmp_path)
    cache.store(shared / "outer", DEVICE, record(entry(64)))
    (shared / "outer" / DEVICE.slug / "secret.json").symlink_to(tmp_path / "secret.jsonl")
    return shared


def test_nothing_outside_the_folder_is_listed(outside):
    with served(outside) as ask:
        data = json.loads(ask("/data")[2])
    assert [one["name"] for one in data["journals"]] == ["runs/a.jsonl", "runs/b.jsonl"]
    assert [one["name"] for one in data["cached"]] == ["cache:reduce"]


def test_the_folder_of_a_device_is_not_left_for_the_cache_around_it(shared):
    with served(shared / "cache" / DEVICE.slug) as ask:
        status, _, text = ask("/data")
    assert status == 200 and json.loads(text)["cached"] == []


def test_a_browser_that_does_not_wait_is_not_an_error(shared, capfd):
    with ExploreServer(ExploredFolder(shared), 0) as server:
        try:
            raise BrokenPipeError(32, "Broken pipe")
        except BrokenPipeError:
            server.handle_error(None, ("127.0.0.1", 1))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.jsonl", "runs/../../secret.jsonl", "%2e%2e/secret.jsonl", "..%2fsecret.jsonl"),
        *("..%5csecret.jsonl", "link.jsonl", "linked/secret.jsonl", "outer:secret", "outer:reduce"),
        *("/etc/passwd", "a%00b", "%ff", "runs/./a.jsonl"),
    ],
)
def test_nothing_outside_the_folder_is_served(outside, path):
    with served(outside) as ask:
        for address in (f"/report?source={path}", f"/data?source={path}", f"/{path}"):
            status, _, text = ask(address)
            assert status == 404 and "time_ms" not in text


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1:{port}", None, 200),
        ("LocalHost:{port}", "http://localhost:{port}", 200),
        ("evil.example:{port}", None, 403),
        ("127.0.0.1.evil.example:{port}", None, 403),
        ("127.0.0.1", None, 403),
        ("127.0.0.1:1", None, 403),
        ("127.0.0.1:{port}", "http://evil.example", 403),
        ("127.0.0.1:{port}", "null", 403),
        ("localhost:{port}", "http://127.0.0.1:{port}", 403),
    ],
)
def test_pages_of_other_hosts_get_nothing(shared, host, origin, status):
    with served(shared) as ask:
        headers = {"Host": host.format(port=ask.port)}
        if origin is not None:
            headers["Origin"] = origin.format(port=ask.port)
        found, _, text = ask("/data?source=runs/a.jsonl", **headers)
    assert found == status and ("time_ms" in text) == (status == 200)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(shared, method):
    before = {path: path.read_bytes() for path in shared.rglob("*") if path.is_file()}
    with served(shared) as ask:
        assert ask("/report?source=runs/a.jsonl", method)[0] == 501
        status, headers, text = ask("/", "HEAD")
    assert status == 200 and int(headers["Content-Length"]) > 0 and not text
    assert {path: path.read_bytes() for path in shared.rglob("*") if path.is_file()} == before


def test_kernels_of_two_caches_are_not_mixed(shared):
    cache.store(shared / "more" / "cache", DEVICE, record(entry(64)))
    with served(shared) as ask:
        _, _, text = ask("/data?source=cache:reduce&source=more/cache:reduce")
    assert "one cache" in json.loads(text)["message"]


def test_a_folder_that_is_not_there_and_a_port_in_use_are_said_in_one_line(tmp_path):
    done = run_in_process(tmp_path, "report", "--live", "nowhere")
    assert done.returncode == 2 and "no such folder" in done.stderr
    with ExploreServer(ExploredFolder(tmp_path), 0) as server:
        done = run_in_process(tmp_path, "report", "--live", "--port", server.port)
    assert done.returncode == 2 and "cannot listen on 127.0.0.1" in done.stderr
    with pytest.raises(InputError, match="cannot listen"):
        ExploreServer(ExploredFolder(tmp_path), 99999)
