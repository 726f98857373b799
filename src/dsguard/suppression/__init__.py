"""Findings that a comment or a setting leaves out, and what is wrong with such comments."""
