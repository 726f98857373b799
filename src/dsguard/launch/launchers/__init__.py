"""One module for each launcher, all of the same shape.

``PROGRAMS`` are the names a launcher is called by, ``read`` makes a
:class:`~dsguard.launch.context.LaunchContext` of a :class:`~dsguard.launch.call.Call`, and the
options stand in a table.
"""
