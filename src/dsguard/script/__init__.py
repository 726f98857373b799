"""Static reading of a training script: what it imports and which arguments it declares.

The text is parsed with :mod:`ast` and followed in the order in which Python would run it;
nothing of it is ever imported or run. What cannot be told from the text is
:class:`~dsguard.script.declaration.Unreadable`, with its reason, or a
:class:`~dsguard.script.script.Gap`.
"""
