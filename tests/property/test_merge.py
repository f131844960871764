"""Merging is a union of sets: order, repetition and grouping change nothing, and nothing is lost."""

import json
from dataclasses import replace
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from autotune.analysis.merge import merge_devices, merge_records, merge_rows
from autotune.core.records import Config
from autotune.core.trials import Failure, Measurement, Rule, Status, Trial
from autotune.evaluation.journal import parse_journal
from autotune.evaluation.journal_rows import encode_trial
from autotune.serving.cache_schema import entry_text, parse_record, record_text
from tests.cache_example import DEFAULT, DEVICE, PROVENANCE, entry, record


@st.composite
def results(draw):
    time_ms = draw(st.sampled_from([1.0, 1.01, 1.5]))
    provenance = replace(
        PROVENANCE,
        engine=draw(st.sampled_from(["adopt", "random"])),
        trials=draw(st.sampled_from([10, 100])),
        tuned_at=draw(st.sampled_from(["2025-01-01T00:00:00+00:00", "2025-02-02T00:00:00+00:00"])),
        source_sha256=draw(st.sampled_from(["5" * 64, "6" * 64])),
        host=draw(st.sampled_from(["one", "two"])),
    )
    plain = entry(draw(st.sampled_from([64, 128])), BLOCK=draw(st.sampled_from([32, 128])))
    measured = draw(st.sampled_from([(), ((DEFAULT, 2.0), (Config({**DEFAULT, "VECTOR": 2}), 3.0))]))
    return replace(
        plain,
        time_ms=time_ms,
        interval_ms=(0.99 * time_ms, 1.02 * time_ms),
        provenance=provenance,
        measured=measured,
    )


@st.composite
def records(draw):
    entries = {found.sizes["n"]: found for found in draw(st.lists(results(), min_size=1, max_size=3))}
    default = Config({**DEFAULT, "UNROLL": draw(st.booleans())})
    return record(*(entries[size] for size in sorted(entries)), default=default)


def everything(*found):
    return {
        entry_text(replace(one, rivals=()))
        for item in found
        for served in item.entries
        for one in (served, *served.rivals)
    }


@given(records(), records(), records())
def test_records_in_any_order_and_grouping(a, b, c):
    whole = record_text(merge_records([a, b, c]))
    assert {record_text(merge_records(order)) for order in permutations([a, b, c])} == {whole}
    assert record_text(merge_records([merge_records([a, b]), c])) == whole
    assert record_text(merge_records([a, merge_records([b, c])])) == whole
    assert record_text(merge_records([merge_records([a, b, c]), b, a])) == whole


@given(records(), records())
def test_nothing_is_lost_and_nothing_is_made_up(a, b):
    assert record_text(merge_records([a])) == record_text(merge_records([a, a])) == record_text(a)
    merged = merge_records([a, b])
    assert everything(merged) == everything(a, b)
    assert len({tuple(found.sizes.items()) for found in merged.entries}) == len(merged.entries)
    assert parse_record(record_text(merged), "file") == merged


@given(st.lists(records(), min_size=1, max_size=4))
def test_a_search_is_served_before_a_probe_and_nothing_clearly_slower_of_the_same_source(found):
    for served in merge_records(found).entries:
        for rival in served.rivals:
            assert rival.provenance.is_probe or not served.provenance.is_probe
            alike = (served.provenance.is_probe, served.provenance.source_sha256) == (
                rival.provenance.is_probe,
                rival.provenance.source_sha256,
            )
            assert not alike or served.interval_ms[0] <= rival.interval_ms[1]


@given(st.permutations(["580.9", "580.65", "99.1"]))
def test_the_newest_driver_describes_a_device(drivers):
    devices = [replace(DEVICE, driver=driver) for driver in drivers]
    assert merge_devices(devices).driver == "580.65"
    assert merge_devices([merge_devices(devices[:2]), devices[2]]) == merge_devices(devices)


@st.composite
def journal_rows(draw):
    status = draw(st.sampled_from(list(Status)))
    samples = tuple(draw(st.lists(st.sampled_from([1.0, 2.0]), min_size=1, max_size=3)))
    key = draw(st.sampled_from("ab"))
    measured = Measurement(samples, Rule.STEADY) if status is Status.OK else None
    failure = None if measured else Failure(status, "")
    trial = Trial(Config({"A": 1}), key, failure, measurement=measured)
    return json.dumps({"trial": encode_trial(trial)})


ROWS = st.lists(journal_rows(), max_size=6)


@given(ROWS, ROWS, ROWS)
def test_rows_in_any_order_and_grouping(a, b, c):
    whole = merge_rows([*a, *b, *c])
    assert merge_rows([*c, *b, *a]) == merge_rows([*a, *merge_rows([*b, *c])]) == merge_rows(whole) == whole
    assert set(whole) == {*a, *b, *c}


@given(ROWS)
def test_a_wrong_result_anywhere_counts_and_what_worked_before_what_did_not(rows):
    text = "".join(f"{line}\n" for line in ('{"journal":1}', *merge_rows(rows)))
    _, trials, *_ = parse_journal(text, "journal")
    given_ = [json.loads(row)["trial"] for row in rows]
    for trial in trials:
        statuses = {row["status"] for row in given_ if row["key"] == trial.key}
        wrong = statuses & {"wrong_result", "out_of_bounds"}
        assert trial.status.value in (wrong or statuses & {"ok"} or statuses)
