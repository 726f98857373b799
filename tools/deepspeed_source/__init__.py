"""Reads the source of DeepSpeed without importing it: see :mod:`deepspeed_source.follow`."""
