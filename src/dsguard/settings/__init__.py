"""The settings of a project: ``[tool.dsguard]`` in pyproject.toml, or dsguard.toml."""
