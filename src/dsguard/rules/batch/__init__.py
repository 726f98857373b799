"""Rules of the batch family."""
