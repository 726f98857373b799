"""Rules of the launch family."""
