"""The timeline of a run: what every process and thread did, and what it waited for.

`span` is the only source of events, and does nothing until `begin` is called. A child process sends its spans
with its answers (autotune/processes/child.py). The clock of `time.perf_counter` is the same in all processes
of a machine.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

STAGES = "stages"  # the track of the run's stages, which is no thread


class Span(NamedTuple):
    """A span of one thread's work, and the CPU time that the thread took itself.

    `call` joins the two sides of a call to a child.
    """

    name: str
    began_s: float
    ended_s: float
    process: int
    process_name: str
    track: str  # the name of a thread
    cpu_s: float = 0.0
    call: str = ""


@dataclass
class _State:
    """The spans of this process and of its children; None while nothing is recorded."""

    spans: list[Span] | None = None
    name: str = ""


_state = _State()
_NOTHING: AbstractContextManager[None] = nullcontext()


def begin(name: str) -> None:
    """Begin to record; `name` is this process's. Spans that a fork inherits are kept."""
    _state.name = name
    _state.spans = _state.spans or []


def end() -> None:
    """Forget everything, and record no more."""
    _state.spans = None


def is_recording() -> bool:
    """True between `begin` and `end`."""
    return _state.spans is not None


def span(name: str, *, call: str = "") -> AbstractContextManager[None]:
    """Record what the `with` block does, which may end by an exception."""
    return _NOTHING if _state.spans is None else _running(name, call)


def add(
    name: str, began_s: float, ended_s: float, *, cpu_s: float = 0.0, call: str = "", track: str = ""
) -> None:
    """Record what was done between two times, by this thread or on a track with a name of its own."""
    if _state.spans is not None:
        track = track or threading.current_thread().name
        _state.spans.append(Span(name, began_s, ended_s, os.getpid(), _state.name, track, cpu_s, call))


def taken() -> list[Span]:
    """Remove and return the spans that are recorded so far, to send them."""
    spans = _state.spans or []
    if _state.spans is not None:
        _state.spans = []
    return spans


def receive(spans: Iterable[Span]) -> None:
    """Add the spans of another process."""
    if _state.spans is not None:
        _state.spans.extend(spans)


def process_began_s() -> float:
    """When the system started this process, on the clock of `time.perf_counter`; now if it does not say."""
    try:
        stat = Path("/proc/self/stat").read_text(errors="replace")
        ticks = int(stat.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return time.perf_counter()
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.perf_counter() - max(0.0, age_s)


def chrome_trace(spans: Iterable[Span]) -> str:
    """The spans in the trace event format of Chrome, which Perfetto reads.

    Arrows lead from the end of each call in a child process to the end of the wait for it.
    """
    unique = sorted(set(spans), key=lambda span: (span.began_s, -span.ended_s))
    start_s = unique[0].began_s if unique else 0.0
    tracks: dict[tuple[int, str], int] = {}
    processes: dict[int, str] = {}
    sides: dict[str, dict[int, Span]] = {}
    events: list[dict[str, Any]] = []

    def place(span: Span) -> dict[str, int]:
        return {"pid": span.process, "tid": tracks.setdefault((span.process, span.track), len(tracks) + 1)}

    def microseconds(time_s: float) -> float:
        return round((time_s - start_s) * 1e6, 3)

    for span in unique:
        processes[span.process] = span.process_name
        began, duration = microseconds(span.began_s), round((span.ended_s - span.began_s) * 1e6, 3)
        event = {"name": span.name, "ph": "X", "ts": began, "dur": duration, **place(span)}
        events.append({**event, "args": {"cpu_ms": round(span.cpu_s * 1e3, 3)}} if span.cpu_s else event)
        if span.call:
            sides.setdefault(span.call, {})[span.process] = span
    numbers = count(1)
    for call, by_process in sides.items():
        child = int(call.partition(".")[0])
        waiting = [span for process, span in by_process.items() if process != child]
        if child in by_process and waiting:
            arrow: dict[str, Any] = {"name": "answer", "cat": "answer", "id": next(numbers)}
            ended = {"ts": microseconds(by_process[child].ended_s), **place(by_process[child])}
            seen = {"ts": microseconds(waiting[0].ended_s), **place(waiting[0])}
            events += [{**arrow, "ph": "s", **ended}, {**arrow, "ph": "f", "bp": "e", **seen}]
    names = [("process_name", process, 0, name) for process, name in processes.items()]
    names += [("thread_name", process, track, name) for (process, name), track in tracks.items()]
    described = [
        {"name": kind, "ph": "M", "pid": process, "tid": track, "args": {"name": name}}
        for kind, process, track, name in names
    ]
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": described + events}, separators=(",", ":"))


@contextmanager
def _running(name: str, call: str) -> Iterator[None]:
    began_s, cpu_began_s = time.perf_counter(), time.thread_time()
    try:
        yield
    finally:
        cpu_s = time.thread_time() - cpu_began_s
        add(name, began_s, time.perf_counter(), cpu_s=cpu_s, call=call)
