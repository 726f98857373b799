"""Rules of the frontend family: what trainers do with a config."""
