"""What `autotune best` prints of a configuration that is served."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from autotune.best import Best


def best_json(best: Best) -> dict[str, Any]:
    """Everything a script may want of it."""
    return {
        "config": dict(best),
        "defines": best.defines,
        "match": asdict(best.match) | {"tier": best.match.tier.value},
        "time_ms": best.time_ms,
        "expected_slowdown": best.expected_slowdown,
        "stale": best.stale_reasons,
    }


def best_text(best: Best) -> str:
    """The configuration, how well it fits, what is stale, and the compiler's flags as the last line."""
    time_text = f"{best.time_ms:.4g} ms" if best.time_ms is not None else "not timed"
    lines = [str(best.config), f"{best.match.tier.value}: {best.match.detail} ({time_text})"]
    if best.expected_slowdown is None:
        lines.append("expected slowdown: not known")
    elif best.expected_slowdown > 1:
        lines.append(f"expected slowdown: at most {best.expected_slowdown:.3g} times, in nine of ten cases")
    lines += [f"stale: {reason}" for reason in best.stale_reasons]
    return "\n".join([*lines, " ".join(best.flags)])
