"""Rules of the schema family."""
