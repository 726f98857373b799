"""``python -m dsguard``."""

from dsguard.cli.app import main

main()
