"""Where the page of a rule is found on the web."""

from __future__ import annotations


def rule_url(rule: str) -> str | None:
    """The address of a rule's page by the rule's slug; None: the pages are not on the web.

    ``dsguard explain RULE`` shows the page that ships with dsguard.
    """
    return None
