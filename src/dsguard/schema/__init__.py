"""The DeepSpeed config: which keys exist, what they mean, which values are taken.

One module models each block. :mod:`~dsguard.schema.validate` says what DeepSpeed does with a
config, :mod:`~dsguard.schema.keys` looks keys up, and :mod:`~dsguard.schema.sniff` tells DeepSpeed
configs from other JSON files without loading any model. Import from these modules; this one
loads nothing.
"""
