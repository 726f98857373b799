"""Resolves a document and a launch into facts: what will really run, and who said so."""
