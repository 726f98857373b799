"""The vocabulary that every other part of dsguard speaks.

Nothing in here imports anything else of dsguard. A reader turns bytes into a
:class:`~dsguard.model.tree.Document`; the resolver turns documents and launch
commands into :mod:`facts <dsguard.model.fact>`; a :mod:`rule <dsguard.model.rule>`
turns facts into :mod:`findings <dsguard.model.finding>`.
"""
