"""What earlier trials say of changing one parameter of a configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def advice_from(
    config: Mapping[str, object], timed: Sequence[tuple[Mapping[str, object], float]], time_ms: float
) -> tuple[str, ...]:
    """What trials say of changing one parameter of a configuration: the best and the worst value of each."""
    found: dict[str, list[tuple[float, object]]] = {}
    for other, other_ms in timed:
        changed = [name for name in config if other.get(name) != config[name]]
        if len(changed) == 1 and other.keys() == config.keys():
            found.setdefault(changed[0], []).append((other_ms / time_ms - 1, other[changed[0]]))
    lines = []
    for name, changes in sorted(found.items(), key=lambda item: -max(abs(change) for change, _ in item[1])):
        shown = {min(changes, key=lambda row: row[0]), max(changes, key=lambda row: row[0])}
        said = ", ".join(
            f"{value} takes {abs(change):.1%} {'more' if change >= 0 else 'less'}"
            for change, value in sorted(shown, key=lambda row: row[0])
        )
        lines.append(f"{name}={config[name]}: {said}")
    return tuple(lines)
