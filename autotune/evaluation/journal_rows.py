"""Converts trials, measurements and outcomes of checks to JSON values and back; refuses damaged rows."""

from __future__ import annotations

from enum import Enum
from typing import Any

from autotune.core import json_values as values
from autotune.core.outcomes import PASSED, Limit, Outcomes, Unchecked, with_reason
from autotune.core.records import Config
from autotune.core.trials import ArrayFault, Failure, Measurement, Rule, Status, Trial
from autotune.errors import Blame


def encode_trial(trial: Trial) -> dict[str, Any]:
    """Convert a trial to JSON values; leave out fields at their defaults."""
    row: dict[str, Any] = {"config": dict(trial.config), "key": trial.key, "status": trial.status.value}
    row |= {name: getattr(trial, name) for name in _OPTIONAL if getattr(trial, name) != getattr(_BLANK, name)}
    if trial.measurement is not None:
        row["measurement"] = encode_measurement(trial.measurement)
    if trial.failure is not None and trial.failure.fault is not None:
        fault = {name: getattr(trial.failure.fault, name) for name in _FAULT}
        row["fault"] = {name: value for name, value in fault.items() if value or name == "sizes"}
    return row


def decode_trial(row: object) -> Trial:
    """Convert back what `encode_trial` returned; raise ValueError for anything else."""
    return values.record(_trial, _TRIAL, (*_OPTIONAL, "measurement", "fault"), row, "trial")


def _trial(
    *,
    status: Status,
    detail: str = "",
    by_machine: bool = False,
    fault: ArrayFault | None = None,
    **others: Any,
) -> Trial:
    if status is Status.OK:
        return Trial(note=detail, **others)
    blame = Blame.MACHINE if by_machine else Blame.CONFIGURATION
    return Trial(failure=Failure(status, detail, blame, fault), **others)


def encode_measurement(measurement: Measurement) -> dict[str, Any]:
    """Convert a measurement to JSON values; leave out optional fields at their defaults."""
    row = {**vars(measurement), "control": measurement.control_ratio}
    return {key: row[key] for key in _MEASUREMENT if key not in _LATER or row[key] != _LATER[key]}


def _decode_fault(row: object, place: str) -> ArrayFault:
    return values.record(ArrayFault, _FAULT, _FAULT.keys() - {"array", "sizes"}, row, place)


def _decode_measurement(row: object, place: str) -> Measurement:
    fields = dict(values.mapping(row, place))
    conditions = fields.get("conditions")
    if isinstance(conditions, dict) and "noise" in conditions:  # an older journal
        fields |= {"noise": conditions["noise"]}
        fields["conditions"] = {name: value for name, value in conditions.items() if name != "noise"}
    optional = (*_LATER, "batch", "energy_j", "conditions")
    return values.record(_measurement, _MEASUREMENT, optional, fields, place)


def _measurement(control: float | None = None, **fields: Any) -> Measurement:
    """A measurement from the keys of a journal."""
    return Measurement(control_ratio=control, **fields)


def encode_checks(outcomes: Outcomes) -> dict[str, Any]:
    """Convert outcomes without failures to JSON values: checks that passed, and the reasons of the others."""
    groups: dict[str, dict[str, str]] = {_LATE: {}, _UNABLE: {}}
    for name, outcome in outcomes.items():
        if isinstance(outcome, Unchecked | Limit):
            is_late = isinstance(outcome, Unchecked) and outcome.is_late
            groups[_LATE if is_late else _UNABLE][name] = outcome.reason
    return {_PASSED: [name for name, outcome in outcomes.items() if outcome is PASSED], **groups}


def _decode_checks(row: object, place: str) -> Outcomes:
    fields = values.mapping(row, place)
    passed = values.list_of(values.text)(fields.get(_PASSED, []), place)
    late, unable = (_reasons(fields.get(group, {}), place) for group in (_LATE, _UNABLE))
    return {
        **dict.fromkeys(passed, PASSED),
        **{name: Unchecked(reason, is_late=True) for name, reason in late.items()},
        **{name: with_reason(name, reason) for name, reason in unable.items()},
    }


def _samples(value: object, place: str) -> tuple[float, ...]:
    """Times in ms, as floats even where the journal has integers."""
    return tuple(map(float, values.list_of(values.amount)(value, place)))


def _some_samples(value: object, place: str) -> tuple[float, ...]:
    samples = _samples(value, place)
    if not samples:
        raise values.Damaged(place, "at least one sample", value)
    return samples


def _member_of(kind: type[Enum]) -> values.Read:
    read = values.choice(tuple(member.value for member in kind))
    return lambda value, place: kind(read(value, place))


_BLANK = Trial(Config({}), "")  # has the defaults
_PASSED, _LATE, _UNABLE = "passed", "late", "could not run"  # how a check ended
_reasons = values.mapping_of(values.text, values.text)
_LATER = {"control": None, "chosen_from": 1, "noise": None}  # of a measurement, left out at these defaults
_MEASUREMENT: dict[str, values.Read] = {
    "samples_ms": _some_samples,
    "rule": _member_of(Rule),
    "warmups_ms": _samples,
    "batch": values.size,
    "energy_j": values.nullable(values.number),
    "conditions": values.mapping_of(values.plain, values.text),
    "control": values.nullable(values.amount),
    "chosen_from": values.size,
    "noise": values.nullable(values.amount),
}
_FAULT: dict[str, values.Read] = {
    "array": values.name,
    "sizes": values.mapping_of(values.integer, values.name),
    **dict.fromkeys(("element", "found", "expected", "allowance", "holder"), values.text),
    **dict.fromkeys(("is_unwritten", "is_end"), values.truth),
}
_OPTIONAL: dict[str, values.Read] = {  # of a trial, left out at their defaults
    "detail": values.text,
    "compile_ms": values.amount,
    "cost_s": values.amount,
    "binary_sha256": values.text,
    "binary_cached": values.truth,
    **dict.fromkeys(("registers", "spill_bytes", "shared_bytes"), values.integer),
    **dict.fromkeys(("by_machine", "failed_last_round"), values.truth),
    "device": values.text,
}
_TRIAL: dict[str, values.Read] = {
    "config": values.config_of(values.plain),
    "key": values.text,
    "status": _member_of(Status),
    "measurement": _decode_measurement,
    "fault": _decode_fault,
    **_OPTIONAL,
}
read_measurements = values.mapping_of(_decode_measurement, values.text)
read_checks = values.mapping_of(_decode_checks, values.text)
