"""Opens the plan of several searches, for the command line and for Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.core.stages import Stage
from autotune.plans.requests import requests_of_misses, requests_of_tunings, search_requests
from autotune.plans.search_plan import SearchPlan, search_one
from autotune.plans.several_spaces import search_spaces
from autotune.recording.tunings import read_recorded
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import Target, read_task

if TYPE_CHECKING:  # needs the extra `cluster`
    from autotune.cluster.connection import Cluster


@contextmanager
def open_plan(
    target: Target,
    spaces: Sequence[Path],
    options: Options,
    observer: Observer,
    cluster: str | None = None,
    *,
    each_model: bool = False,
    wanted: bool = False,
    recorded: Path | None = None,
) -> Iterator[SearchPlan]:
    """Open the plan that searches one space, or several in turns.

    With `each_model`, it searches one on all models of the cluster at once; with `wanted`, what programs did
    not find, and with `recorded`, what a program tuned, both with the kernels of the spaces. The space of the
    target does not count.
    """
    targets = [replace(target, space=space) for space in spaces]
    if wanted:
        observer.stage(Stage("finding devices"))
        requests = requests_of_misses(options.cache, target.device, *spaces)
        yield partial(search_requests, requests, options)
    elif recorded:
        requests = requests_of_tunings(read_recorded(recorded), spaces, target.device)
        yield partial(search_requests, requests, options)
    elif each_model:
        from autotune.cluster.connection import open_each_model
        from autotune.plans.each_model import search_models

        with open_each_model(str(cluster), target.device, observer.stage, observer.warn) as clusters:
            yield partial(search_models, targets[0], options, clusters)
    else:
        with open_cluster(cluster, target.device, observer) as opened:
            if len(targets) > 1:
                yield partial(search_spaces, targets, options, opened)
            else:
                devices = None if opened is None else [(opened.address, opened.info)]
                task = read_task(targets[0], observer.stage, devices)
                yield partial(search_one, task, options, opened)


@contextmanager
def open_cluster(cluster: str | None, device: str | None, observer: Observer) -> Iterator[Cluster | None]:
    """The devices of the first model in the cluster that `--cluster` names; None without a name."""
    if cluster is None:
        yield None
        return
    from autotune.cluster.connection import open_each_model  # needs the extra `cluster`

    with open_each_model(cluster, device, observer.stage, observer.warn) as models:
        yield models[0]
