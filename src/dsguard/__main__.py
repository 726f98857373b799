"""The start of the program, as ``dsguard`` and as ``python -m dsguard``."""

from __future__ import annotations

import gc

_YOUNG = 200_000
"""So many new objects are worth a look for garbage."""


def main() -> None:
    """Run the program on ``sys.argv`` and exit with its code."""
    # What is imported is no garbage, and looking for it is a tenth of a cold start.
    gc.set_threshold(_YOUNG)
    from dsguard.cli.app import main

    main()


if __name__ == "__main__":
    main()
