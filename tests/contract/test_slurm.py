"""A search through a real SLURM of one node, started for the test: Debian's slurm-wlm and munge."""

import getpass
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from autotune.evaluation.journal import read_trials

PROGRAMS = ("sbatch", "slurmctld", "slurmd", "munged")
FOUND = {name: shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") for name in PROGRAMS}
MISSING = ", ".join(name for name, path in FOUND.items() if path is None)
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"needs SLURM and munge: no {MISSING}"),
    pytest.mark.skipif(find_spec("dask_jobqueue") is None, reason="needs the extra cluster"),
]

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory=1000
PartitionName=all Nodes=ALL Default=YES
"""


@pytest.fixture
def slurm():
    """The environment in which commands use a SLURM of their own."""
    with (
        tempfile.TemporaryDirectory(prefix="slurm") as name,
        ExitStack() as opened,
    ):  # a socket's path is short
        folder = Path(name)
        for part in ("state", "spool"):
            (folder / part).mkdir()
        (folder / "key").write_bytes(os.urandom(128))
        (folder / "key").chmod(0o600)
        host = socket.gethostname().partition(".")[0]
        text = CONFIGURATION.format(
            host=host, user=getpass.getuser(), ports=free_ports(2), folder=folder, cores=os.cpu_count()
        )
        (folder / "slurm.conf").write_text(text)
        environment = {"SLURM_CONF": str(folder / "slurm.conf")}
        files = {"socket": "munge.socket", "key-file": "key", "pid-file": "pid", "seed-file": "seed"}
        options = [f"--{option}={folder / file}" for option, file in files.items()]
        log = opened.enter_context((folder / "log").open("w+"))
        for program, *arguments in (
            ("munged", "--foreground", "--force", *options, f"--log-file={folder / 'munge.log'}"),
            ("slurmctld", "-D"),
            ("slurmd", "-D"),
        ):
            process = subprocess.Popen(
                [FOUND[program], *arguments], env=os.environ | environment, stdout=log, stderr=log
            )
            opened.callback(stop, process)
            if program == "munged":
                wait_until(lambda: (folder / "munge.socket").exists(), folder)
        asked = ["sinfo", "--noheader", "--format=%T"]
        wait_until(
            lambda: (
                subprocess.run(
                    asked, env=os.environ | environment, capture_output=True, text=True
                ).stdout.strip()
                == "idle"
            ),
            folder,
        )
        yield environment


def stop(process):
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_ports(count):
    with ExitStack() as opened:
        sockets = [opened.enter_context(closing(socket.socket())) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def wait_until(is_so, folder):
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, (folder / "log").read_text()
        time.sleep(0.1)


def test_jobs_of_slurm_measure_a_search(folder, slurm):
    search = ("search", "double.yaml", "--cluster", "slurm:2", "--device", "fake", "--journal", "j.jsonl")
    process = folder.start(
        *(*search, "--engine", "exhaustive", "--json"),
        **slurm,
        AUTOTUNE_FAKE_DEVICES="2",
        DASK_JOBQUEUE__SLURM__CORES="1",
        DASK_JOBQUEUE__SLURM__MEMORY="500MB",
        DASK_JOBQUEUE__SLURM__INTERFACE="lo",
    )
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert json.loads(out)["config"] == {"A": 5, "B": 0}
    trials = read_trials(folder.path / "j.jsonl")
    assert len(trials) == 17 and all("fake:" in trial.device for trial in trials)
    assert list(folder.path.glob("slurm-*.out"))  # what SLURM keeps of a job
