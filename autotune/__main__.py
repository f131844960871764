"""The command `autotune`, which `python -m autotune` is as well."""

import sys


def main() -> int:
    """Run the command line; Ctrl-C ends it quietly even while its modules are being loaded."""
    try:
        from autotune.cli import main as run

        return run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
