"""A query to `best_config`, and the facts that every answer states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autotune.core.frozen import dataclass, replace
from autotune.core.records import DeviceInfo, Entry, KernelRecord, Provenance, Sizes, Tier
from autotune.core.text import size_text
from autotune.errors import InputError
from autotune.hardware.names import slug

_FACTS = {"source_sha256": "kernel source", "space_sha256": "space"}  # fields with long hashes


@dataclass(frozen=True)
class Query:
    """A query to `best_config`; `loosest` is the loosest tier that may be served."""

    kernel: str
    device: str | DeviceInfo | None
    dtype: str | None
    loosest: Tier
    sizes: Sizes | None
    data: str | None = None

    def select_data(self, record: KernelRecord) -> KernelRecord:
        """Keep the results for the query's data, which is the name of the inputs' content.

        A query that names no data gets the results without a name, else the results of the only name. Raises
        InputError if all results have names, and not the same.
        """
        known = dict.fromkeys(entry.data for entry in record.entries)
        if self.data is None and len(known) < 2:
            return record
        if self.data is None and "" not in known:
            listed = " or ".join(f"data={name!r}" for name in known)
            raise InputError(f"{self.kernel}: was tuned for several inputs; choose one: {listed}")
        data = self.data or ""
        return replace(record, entries=tuple(entry for entry in record.entries if entry.data == data))

    @property
    def slug(self) -> str | None:
        """The folder name of the device; None if no device was given."""
        if isinstance(self.device, DeviceInfo):
            return self.device.slug
        return None if self.device is None else slug(self.device)

    @property
    def given(self) -> DeviceInfo | None:
        """The description of the device, if the caller gave one."""
        return self.device if isinstance(self.device, DeviceInfo) else None


def only_sizes(folder: str, entries: Sequence[Entry], query: Query) -> Sizes:
    """The sizes of a device's only result; raises InputError when there are several."""
    if len(entries) > 1:
        listed = " or ".join(size_text(entry.sizes) for entry in entries)
        raise InputError(f"{query.kernel}: give the sizes; {folder} has results for {listed}")
    return entries[0].sizes if entries else {}


def dtype_of(record: KernelRecord, query: Query) -> str:
    """The element type of the query, else the first declared; raises InputError for an undeclared type."""
    dtype = query.dtype or record.dtypes[0]
    if dtype not in record.dtypes:
        raise InputError(f"{query.kernel}: dtype {dtype!r}: expected one of {', '.join(record.dtypes)}")
    return dtype


def stale_reasons(entry: Entry, record: KernelRecord, device: DeviceInfo | None) -> tuple[str, ...]:
    """Changes since a result was found, as sentences.

    The record's newest result tells the present source and space, and the device, if it is known, the present
    driver and runtime.
    """
    newest = max((entry.provenance for entry in record.entries), key=lambda provenance: provenance.tuned_at)
    now = {"source_sha256": newest.source_sha256, "space_sha256": newest.space_sha256}
    if device is not None:
        now |= {"driver": device.driver, "runtime": device.runtime}
    return changes(entry.provenance, now)


def changes(was: Provenance, now: Mapping[str, str]) -> tuple[str, ...]:
    """The fields in `now` whose values differ from an origin, as sentences."""
    return tuple(
        f"the {_FACTS.get(name, name)} was {before[:length]} when this was tuned and is {value[:length]} now."
        for name, value in now.items()
        if (before := getattr(was, name)) not in ("", value)  # empty where not recorded
        for length in (12 if name in _FACTS else 40,)
    )
