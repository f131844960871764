"""The tried share of a space, and the estimate for the rest, in one sentence."""

from __future__ import annotations

from autotune.core.records import NOISY
from autotune.core.trials import Objective
from autotune.searchers.base import FASTER
from autotune.tuning.result import SearchResult


def coverage_text(result: SearchResult) -> str:
    """The tried share of the space, and the estimate for the rest."""
    estimate, is_noisy = result.stopping_estimate, (result.final.noise or 0.0) > NOISY
    count = f"{estimate.valid:,} valid configurations"
    if estimate.tried == estimate.valid:
        return f"explored all {count}" if estimate.valid > 1 else "explored the only valid configuration"
    text = f"explored {_percent(estimate.tried / estimate.valid, 2)} of {count}"
    if (chance := estimate.improvement_probability) is None or is_noisy:
        reason = "too noisy" if is_noisy else "too few have a time"
        return f"{text}; {reason} to estimate the rest"
    better = "faster" if result.objective is Objective.TIME else "better"
    return f"{text}; {_percent(chance)} chance that an untried one is at least {FASTER:.0%} {better}"


def _percent(share: float, digits: int = 0) -> str:
    """A percentage that is 0% or 100% only if the share is exactly that: `<1%`, `16%`, `>99%`."""
    text, least = f"{share:.{digits}%}", 10.0 ** -(digits + 2)
    if float(text[:-1]) == 0:
        return f"<{least:.{digits}%}"
    return f">{1 - least:.{digits}%}" if float(text[:-1]) == 100 else text
