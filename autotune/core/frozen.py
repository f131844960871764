"""`dataclass` and its functions for modules that a look-up or first call imports: see `frozen_dataclass`."""

from autotune.core.frozen_dataclass import optional_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass, field, fields, replace
else:
    from autotune.core.frozen_dataclass import dataclass, field, fields, replace

__all__ = ["dataclass", "field", "fields", "optional_fields", "replace"]
