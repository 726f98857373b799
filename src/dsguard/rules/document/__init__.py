"""Rules of the document family."""
