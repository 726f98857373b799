"""Report in, text out: every output format is a pure function of a report.

Nothing in here reads a file, an environment variable or a terminal, except
:mod:`~dsguard.render.stream`, which decides how a stream wants to be written.
"""
