"""Dask workers that a search starts on its machine: only it can use them, and they end with it."""

import asyncio
import signal
import socket
import ssl
import time
from contextlib import contextmanager

import pytest

from tests.conftest import LIMIT_S, wait_until
from tests.faults.processes_of import MARK, listening, processes_of

distributed = pytest.importorskip("distributed", reason="needs the extra cluster")

HANGS = """\
import pathlib, time

def double(grid, block, x, y, n):
    pathlib.Path("began").touch()
    time.sleep(600)
"""


@contextmanager
def search(folder, *way):
    """A search at work in a kernel that does not end; yields its process and its mark."""
    folder.write(HANGS)
    (folder.path / "temporary").mkdir()
    environment = {"AUTOTUNE_FAKE_DEVICES": "2", "TMPDIR": str(folder.path / "temporary")}
    command = ("search", "double.yaml", *way, "--timeout", "600")
    process = folder.start(*command, **environment, **{MARK: str(folder.path)})
    try:
        wait_until(lambda: (folder.path / "began").exists() or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        yield process, str(folder.path)
    finally:
        process.kill()
        process.communicate()


def wait_for_the_end(mark):
    """Wait until no process is left; Dask's own `dask worker` notices only after half a minute."""
    began_s = time.monotonic()
    wait_until(lambda: not processes_of(mark))
    assert time.monotonic() - began_s < 20


def test_only_the_search_can_connect_to_its_workers_and_they_end_when_it_is_killed(folder):
    with search(folder, "--devices", "fake:0,fake:1") as (process, mark):
        require_closed(mark, folder.path)
        process.kill()
        process.wait()
        wait_for_the_end(mark)
    temporary = folder.path / "temporary"
    assert all(path.name.startswith("autotune-scratch-") for path in temporary.iterdir())
    assert folder.run("devices", TMPDIR=str(temporary)).returncode == 0
    assert list(temporary.iterdir()) == []


def test_workers_of_a_local_cluster_are_as_closed_and_end_with_the_terminal(folder):
    with search(folder, "--cluster", "local:2", "--device", "fake") as (process, mark):
        require_closed(mark, folder.path)
        for _ in range(2):  # one from the terminal, one from its shell
            process.send_signal(signal.SIGHUP)
        _, errors = process.communicate()
        assert process.returncode == 128 + signal.SIGHUP
        assert errors.endswith("autotune: interrupted; the same command resumes\n")
        wait_for_the_end(mark)
    assert list((folder.path / "temporary").iterdir()) == []


def require_closed(mark, folder):
    """Check that what listens is on the loopback interface and refuses clients of others."""
    places = [place for pid in processes_of(mark) for place in listening(pid)]
    assert len(places) == 3  # the scheduler and two workers; no HTTP server
    assert all(address.is_loopback for address, _ in places)
    for _, port in places:
        with pytest.raises(OSError):
            asyncio.run(_connected(f"tcp://127.0.0.1:{port}"))
        with pytest.raises((ssl.SSLError, ConnectionError)):
            _greeting(port, folder)


async def _connected(address):
    """A plain Dask client's first step, which a server answers with what it speaks."""
    comm = await distributed.comm.connect(address, timeout=LIMIT_S)
    await comm.close()


def _greeting(port, folder):
    """What Dask sends first to a client that trusts any server and has a certificate of its own."""
    own = distributed.Security.temporary()
    file = folder / "own.pem"
    file.write_text(own.tls_client_key + own.tls_client_cert)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(file)
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        context.wrap_socket(plain) as encrypted,
    ):
        return encrypted.recv(1)
