"""The package grows only for a reason that is written down."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SIZES = ROOT / "tests" / "size.txt"
SLACK = (
    0.03  # share by which a package may be smaller than its number, so that not each change edits the file
)


def sizes() -> dict[str, int]:
    """The lines of Python of every package, the root's files as `autotune`."""
    found: dict[str, int] = {}
    for file in (ROOT / "autotune").rglob("*.py"):
        package = file.relative_to(ROOT / "autotune").parts[0]
        package = "autotune" if package.endswith(".py") else package
        found[package] = found.get(package, 0) + len(file.read_text(encoding="utf-8").splitlines())
    return found


def allowed() -> dict[str, int]:
    """The lines that the file allows."""
    rows = (line.split() for line in SIZES.read_text(encoding="utf-8").splitlines())
    return {row[0]: int(row[1]) for row in rows if row and row[0] != "#"}


@pytest.mark.parametrize("package", sorted(sizes() | allowed()))
def test_a_package_grows_for_a_written_reason_only(package):
    found, most = sizes().get(package, 0), allowed().get(package, 0)
    assert found <= most, f"{package} has {found} lines, {SIZES.name} allows {most}: raise it, with a reason"
    assert found >= (1 - SLACK) * most, f"{package} has {found} lines only: lower the {most} of {SIZES.name}"
