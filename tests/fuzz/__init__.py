"""Any bytes at all where dsguard reads bytes: an answer, in bounded time and memory, and no more.

A target (:mod:`tests.fuzz.targets`) takes the bytes of one kind of input the way a user would give
them to the program, and looks at every answer that comes out. Its inputs are mutations of the
fixtures (:mod:`tests.fuzz.inputs`); what is read, written and started meanwhile is watched
(:mod:`tests.fuzz.effects`).

    python -m pytest tests/fuzz              # a short run that is the same every time, in the suite
    python -m tests.fuzz --minutes 60        # an hour over all targets, with atheris where it is
    python -m tests.fuzz hostfile shell      # these targets only

What a long run finds goes into ``tests/fuzz/found/<target>/`` before it is mended, and stays there.
"""
