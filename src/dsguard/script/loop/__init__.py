"""What a training script does with its engine: who makes it, what is called on it, and where.

:mod:`~dsguard.script.loop.description` holds what rules look at. The other modules are the part
of the interpreter that follows engines, optimizers, losses and loaders through the script. Only
what plainly comes from ``deepspeed.initialize`` or ``accelerator.prepare`` is followed; anything
else ends in silence, never in a guess.
"""
