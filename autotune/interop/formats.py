"""The formats that results are written in, by the name that `autotune export --format` knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autotune.interop import journals, t4
from autotune.interop import kernel_tuner as kernel_tuner_cache
from autotune.interop.recording import Recording

WRITERS: Mapping[str, Callable[[Recording], str]] = {
    t4.NAME: t4.write,
    kernel_tuner_cache.NAME: kernel_tuner_cache.write,
    journals.NAME: journals.write,
}
