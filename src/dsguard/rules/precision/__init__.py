"""Rules of the precision family."""
