"""Files of the searching machine on another one are copied only where they are missing."""

from pathlib import Path

from autotune.cluster.travelling_files import TravellingFiles, paths_of
from autotune.core.trials import Binary, Measurement, Problem, Rule
from autotune.evaluation.work_item import Incumbent, MeasurementPolicy, WorkItem
from autotune.problem.workload import Array, StoredArray, Workload


def problem(x: str, y: str) -> Workload:
    arrays = (
        Array("x", "int32", (2,), "in", ("stored", "a"), x),
        Array("y", "int32", (2,), "out", None),
    )
    return Workload(
        Problem({"n": 2}, "int32"), arrays, (), (), expected=(("y", StoredArray(y, "int32", (2,), "b")),)
    )


def test_what_a_machine_lacks_or_has_otherwise_is_read_from_a_copy(tmp_path):
    here = tmp_path / "here.npy"
    here.write_bytes(b"same")
    other = tmp_path / "other.npy"
    other.write_bytes(b"old")
    (tmp_path / "copies").mkdir()
    files = TravellingFiles(tmp_path / "copies")
    files.add({str(here): b"same", str(other): b"new", "/elsewhere/x.npy": b"x", "/elsewhere/b/x.npy": b"y"})
    assert files.path(str(here)) == str(here) and other.read_bytes() == b"old"
    found = files.workload(problem("/elsewhere/x.npy", str(other)))
    assert [Path(path).read_bytes() for path in paths_of([found])] == [b"x", b"new"]
    assert found.identity == problem("/elsewhere/x.npy", str(other)).identity

    one, two = problem(str(here), "/elsewhere/b/x.npy"), problem("/elsewhere/x.npy", str(here))
    incumbent = Incumbent(Measurement((1.0,), Rule.STEADY), None, two)
    item = WorkItem(Binary(b"", "", "", 0.0), (one,), two, MeasurementPolicy(), incumbent, None, 0.0)
    sent = files.item(item)
    problems = (*sent.verify_workloads, sent.workload, sent.incumbent.workload)
    read = [Path(path).read_bytes() for path in paths_of(problems)]
    assert read == [b"same", b"y", b"x", b"same", b"x", b"same"]
