"""Recorded results as an Optuna study, for its dashboard, its plots or further searches.

Parameters are categorical. A failure is a trial of state FAIL, with status and reason as attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.errors import InputError, WriteError
from autotune.interop.recording import Recording

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

_URL = re.compile(r"^[a-z0-9+]+://")
_MAX_BYTES = 1000  # of the first line that are read
_BEGAN = datetime(2000, 1, 1, tzinfo=UTC)  # of the first trial; only durations mean something


def export(recording: Recording, target: str) -> str:
    """Add a study called `KERNEL on DEVICE` to a storage and return that name.

    `target` is a file for Optuna's journal storage, or the URL of a database, which takes some 60 ms for each
    result. Raises InputError when it has such a study already and WriteError when it cannot be written.
    """
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    from autotune.searchers.optuna_search import quiet

    if not _URL.match(target) and not _takes_studies(Path(target)):
        raise InputError(f"{target}: holds no studies of Optuna; choose another file")
    name = f"{recording.kernel} on {recording.device}"
    with quiet():
        try:
            study = optuna.create_study(storage=storage(target), study_name=name, direction="minimize")
        except optuna.exceptions.DuplicatedStudyError:
            raise InputError(f"{target}: has a study {name!r} already; choose another file") from None
        except (OSError, optuna.exceptions.StorageInternalError, SQLAlchemyError) as error:
            raise WriteError(f"{target}: cannot be written: {str(error).splitlines()[0]}") from None
        study.set_user_attr("kernel", recording.kernel)
        study.set_user_attr("device", recording.device)
        study.set_user_attr("sizes", dict(recording.sizes or {}))
        study.add_trials(list(_trials(recording)))
    return name


def _takes_studies(path: Path) -> bool:
    """True if a file is missing, empty or a journal of Optuna; Optuna itself finds out too late."""
    if not path.is_file():
        return True
    with path.open("rb") as file:
        first = file.readline(_MAX_BYTES)
    return not first or b'"op_code"' in first


def _trials(recording: Recording) -> Iterator[Any]:
    from optuna.distributions import BaseDistribution, CategoricalDistribution
    from optuna.trial import FrozenTrial, TrialState

    domains: dict[str, BaseDistribution] = {
        item.name: CategoricalDistribution(item.values) for item in recording.parameters
    }
    began = _BEGAN.replace(tzinfo=None)
    for number, trial in enumerate(recording.trials):
        ended = began + timedelta(seconds=trial.cost_s)
        attributes = {"status": trial.status.value, "detail": trial.detail, "cost_s": trial.cost_s}
        yield FrozenTrial(
            number=number,
            trial_id=number,
            state=TrialState.FAIL if trial.time_ms is None else TrialState.COMPLETE,
            value=trial.time_ms,
            params={name: trial.config[name] for name in domains},
            distributions=domains,
            user_attrs=attributes,
            system_attrs={},
            intermediate_values={},
            datetime_start=began,
            datetime_complete=ended,
        )
        began = ended


def storage(target: str) -> BaseStorage | str:
    """The storage of a target: a URL itself, or a journal storage for a file."""
    if _URL.match(target):
        return target
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(target))
