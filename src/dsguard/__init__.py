"""dsguard: know what DeepSpeed will really run before you launch it."""

__version__ = "0.1.0"
