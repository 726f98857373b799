"""Start a new rule: its module, its page, its fixtures and a changelog fragment.

    python tools/new_rule.py stale-total --family batch

Everything it writes fails a test until it is filled in, so that nothing of it can be forgotten.
Then `python tools/generate.py` puts the rule into the index and its page into the documentation.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from dsguard.model.rule import FAMILIES
from rule_modules import linter_rules

ROOT = Path(__file__).parent.parent

MODULE = '''"""TODO: what is wrong, in a few words; see {stem}.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.model.finding import Finding, Severity
from dsguard.model.rule import Reporter, rule


@rule(
    code="{code}",
    slug="{slug}",
    summary="TODO: what is wrong, as the list of rules shows it",
    severity=Severity.ERROR,
    since="{version}",
)
def {stem}(case: Case, report: Reporter) -> Iterator[Finding]:
    """TODO: what is compared with what."""
    raise NotImplementedError
'''

PAGE = """# {slug} ({code})

TODO: one sentence.

- Symptom: TODO, what a user sees; an error message in backticks

## What it finds

## Why it matters

## Example

```json bad
{{"train_micro_batch_size_per_gpu": 4}}
```

```console
dsguard check ds_config.json -- deepspeed --num_gpus 8 train.py --deepspeed_config ds_config.json
```

```text
```

## Fix

```json good
{{"train_micro_batch_size_per_gpu": 4}}
```

## When it is fine

## References
"""


def main() -> int:
    """Write the files; nothing that exists is overwritten."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("slug", help="kebab-case; names the bad thing and reads well after 'allow'")
    parser.add_argument(
        "--family", required=True, choices=sorted(set(FAMILIES.values()) - {"guard"})
    )
    args = parser.parse_args()
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", args.slug):
        parser.error(f"a slug is kebab-case, not {args.slug!r}")
    if any(rule.meta.slug == args.slug for rule in linter_rules()):
        parser.error(f"there is a rule {args.slug}")
    stem = args.slug.replace("-", "_")
    code = next_code(args.family)
    from dsguard import __version__

    values = {"slug": args.slug, "stem": stem, "code": code, "version": __version__}
    folder = ROOT / "src" / "dsguard" / "rules" / args.family
    fixtures = ROOT / "fixtures" / "rules" / args.slug
    files = {
        folder / f"{stem}.py": MODULE.format(**values),
        folder / f"{stem}.md": PAGE.format(**values),
        ROOT / "changelog.d" / f"+{args.slug}.added.md": f"Rule `{args.slug}` ({code}): TODO.\n",
    }
    if not (folder / "__init__.py").exists():
        files[folder / "__init__.py"] = f'"""Rules of the {args.family} family."""\n'
    for verdict in ("bad", "good"):
        for number in (1, 2):
            files[fixtures / verdict / f"todo-{number}.json"] = "{}\n"
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
    return 0


def next_code(family: str) -> str:
    """The first free code of a family; codes are never used again."""
    digit = next(digit for digit, name in FAMILIES.items() if name == family)
    taken = [int(rule.meta.code[4:]) for rule in linter_rules() if rule.meta.family == family]
    return f"DSG{digit}{max(taken, default=0) + 1:02}"


if __name__ == "__main__":
    sys.exit(main())
