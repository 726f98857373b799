"""Who fills an absent or ``"auto"`` value, and who wins when two places name one value.

One module per front end, all of the same shape (:class:`~dsguard.frontends.base.FrontEnd`).
"""
