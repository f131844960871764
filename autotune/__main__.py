"""The command `autotune`, also run by `python -m autotune`."""

import sys


def main() -> int:
    """Run the command line; Ctrl-C ends it without a traceback even while modules are being imported."""
    try:
        from autotune.cli import main as run

        return run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
