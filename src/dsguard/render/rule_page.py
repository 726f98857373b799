"""Where dsguard and the pages of its rules are found on the web."""

from __future__ import annotations

HOME = "https://github.com/dsguard/dsguard"
"""The repository, which holds the pages too."""


def rule_url(rule: str) -> str:
    """The address of a rule's page by the rule's slug.

    ``dsguard explain RULE`` shows the page that ships with dsguard.
    """
    return f"{HOME}/blob/main/docs/rules/{rule}.md"
