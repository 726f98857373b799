"""Rules of the script family."""
