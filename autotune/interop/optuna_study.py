"""Recorded results as an Optuna study, for its dashboard, its plots or further searches.

Parameters are categorical. A failure is a trial of state FAIL, with status and reason as attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.errors import InputError, WriteError
from autotune.interop.recording import Recording

if TYPE_CHECKING:
    from optuna.storages import JournalStorage

_MAX_BYTES = 1000  # of the first line that are read
_BEGAN = datetime(2000, 1, 1, tzinfo=UTC)  # of the first trial; only durations mean something


def export(recording: Recording, path: Path) -> str:
    """Add a study called `KERNEL on DEVICE` to a file of Optuna's journal storage and return that name.

    Raises InputError when it has such a study already and WriteError when it cannot be written.
    """
    import optuna

    from autotune.searchers.optuna_search import quiet

    if not _takes_studies(path):
        raise InputError(f"{path}: holds no studies of Optuna; choose another file")
    name = f"{recording.kernel} on {recording.device}"
    with quiet():
        try:
            study = optuna.create_study(storage=storage(path), study_name=name, direction="minimize")
        except optuna.exceptions.DuplicatedStudyError:
            raise InputError(f"{path}: has a study {name!r} already; choose another file") from None
        except OSError as error:
            raise WriteError(f"{path}: cannot be written: {error.strerror}") from None
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
        line = file.readline(_MAX_BYTES)
    return not line or b'"op_code"' in line


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


def storage(path: Path) -> JournalStorage:
    """Optuna's storage in a file."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(str(path)))
