"""Rules of the optimizer family: the optimizer and scheduler blocks."""
