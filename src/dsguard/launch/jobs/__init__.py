"""Job files: the arguments of a training run, written in a file instead of typed.

One module for each framework, all of the same shape
(:class:`~dsguard.launch.jobs.framework.Framework`), imported where its files occur.
:mod:`~dsguard.launch.jobs.attach` adds what a file says to the launch that names it,
:mod:`~dsguard.launch.jobs.alone` reads a file without any launch command.
"""
