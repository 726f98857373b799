"""The JSON report, version 1: the models, the report as JSON, and its JSON Schema.

The models are the one description of the format; the published schema is made from them.
A key that does not apply is left out, except where its type says that it may be null.
Readers must ignore keys they do not know: later releases may add some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SkipValidation
from pydantic.json_schema import GenerateJsonSchema

from dsguard import __version__
from dsguard.model.fact import (
    Candidate,
    Conflict,
    Fact,
    FactName,
    Known,
    Origin,
    OriginKind,
    Unknown,
)
from dsguard.model.finding import Confidence, Consequence, Finding, Fix, Safety, Severity
from dsguard.model.report import Check, Report, TargetOrigin
from dsguard.render.order import file_of, findings_in_order
from dsguard.render.rule_page import rule_url
from dsguard.render.values import json_object, json_value

if TYPE_CHECKING:
    from dsguard.model.source import Location

VALUE = (
    "Any JSON value. NaN and the infinities are the strings NaN, Infinity and -Infinity;"
    " null is a value like any other, such as no scheduler."
)


UserText: TypeAlias = Annotated[str, SkipValidation]
"""A string that may quote a file or a path: lone surrogates, which pydantic refuses, occur."""


def _leave_out_nulls(schema: dict[str, Any]) -> None:
    """Say in a schema that an optional key is left out where it does not apply, never null."""
    for name in schema["properties"].keys() - set(schema.get("required", ())):
        field = schema["properties"][name]
        if "default" in field and field.pop("default") is None:
            (kept,) = (choice for choice in field.pop("anyOf") if choice != {"type": "null"})
            schema["properties"][name] = {**kept, **field}


class Part(BaseModel):
    """A part of a published format: it does not change, and says what a missing key means."""

    model_config = ConfigDict(frozen=True, json_schema_extra=_leave_out_nulls)


class ToolV1(Part):
    """A program and its release."""

    name: Literal["dsguard"] = Field(description="Always dsguard.")
    version: str = Field(description="The release of dsguard.")


class TargetV1(Part):
    """The DeepSpeed release that a config is judged by."""

    deepspeed: str = Field(description="The release, such as 0.19.8.")
    origin: TargetOrigin = Field(
        description="option: asked for with --target. installed: found in this environment. "
        "pinned: by a lock file or the requirements of the project. newest known: no DeepSpeed "
        "was found here."
    )


class OriginV1(Part):
    """Who said a value. Only the keys that apply are there."""

    kind: OriginKind = Field(
        description="config: the DeepSpeed config. launch: the launch command. environment: an"
        " environment variable. hostfile, jobfile, script: such a file. option: an option of"
        " dsguard. default: nobody said it. derived: computed from other facts."
    )
    file: UserText | None = Field(
        None, description="The file it stands in. Not for words of a launch command."
    )
    pointer: UserText | None = Field(None, description="The JSON Pointer (RFC 6901) in that file.")
    line: int | None = Field(None, description="The line in that file, from 1.")
    column: int | None = Field(None, description="The column in code points, from 1.")
    argument: UserText | None = Field(
        None,
        description="The command-line argument, option of dsguard or environment variable.",
    )
    whose: UserText | None = Field(
        None, description="Whose default it is, such as DeepSpeed 0.19.8."
    )
    facts: list[str] | None = Field(
        None, description="The facts that a derived value was computed from."
    )
    formula: UserText | None = Field(
        None, description="How it was computed, with the numbers in it."
    )


class CandidateV1(Part):
    """A value that somebody gave."""

    value: Any = Field(description=VALUE)
    origin: OriginV1 = Field(description="Who gave it.")


class KnownV1(Part):
    """A fact whose value is known."""

    state: Literal["known"] = Field(description="Always known.")
    value: Any = Field(description=VALUE)
    origin: OriginV1 = Field(description="Who said the value that counts.")
    ignored: list[CandidateV1] = Field(description="The values that lost against it.")


class UnknownV1(Part):
    """A fact that cannot be known before launch."""

    state: Literal["unknown"] = Field(description="Always unknown.")
    reason: UserText = Field(description="Why it cannot be known, a clause without a full stop.")
    ignored: list[CandidateV1] = Field(description="Values that somebody gave and nobody reads.")


class ConflictV1(Part):
    """A fact of which two values were given where the run stops instead of choosing one."""

    state: Literal["conflict"] = Field(description="Always conflict.")
    candidates: list[CandidateV1] = Field(description="The values that were given.")


FactV1: TypeAlias = Annotated[KnownV1 | UnknownV1 | ConflictV1, Field(discriminator="state")]


class SkippedRuleV1(Part):
    """A rule that could not be judged, because facts it needs are unknown."""

    rule: str = Field(description="The slug of the rule.")
    missing: list[str] = Field(description="The facts that it needs and that are not known.")
    reason: UserText = Field(description="Why they are not known, a clause without a full stop.")


class CheckV1(Part):
    """One pair of a config and a launch command."""

    config: UserText | None = Field(
        description="The config file as it was named; null where the launch names none that"
        " could be read."
    )
    launch: UserText | None = Field(
        description="The launch command as one line; null where none was given."
    )
    target: TargetV1 = Field(description="The DeepSpeed release that the config is judged by.")
    facts: dict[FactName, FactV1] = Field(
        description="What will run, and who said so, by the name of the fact."
    )
    skipped_rules: list[SkippedRuleV1] = Field(description="The rules that could not be judged.")


class PositionV1(Part):
    """A place in a text."""

    line: int = Field(ge=1, description="The line, from 1.")
    column: int = Field(ge=1, description="The column in Unicode code points, from 1.")


class RangeV1(Part):
    """A stretch of a text, without its end."""

    start: PositionV1 = Field(description="The first character.")
    end: PositionV1 = Field(description="Just behind the last character.")


class BecauseV1(Part):
    """One number that a finding rests on."""

    fact: UserText = Field(description="What it is the value of; mostly the name of a fact.")
    value: Any = Field(description=VALUE)
    origin: OriginV1 = Field(description="Who said it.")


class EditV1(Part):
    """Replace a stretch of the finding's file by a text."""

    start: int = Field(ge=0, description="The first code point that goes, from 0.")
    end: int = Field(ge=0, description="The first code point behind it that stays.")
    text: UserText = Field(description="What comes in its place.")


class FixV1(Part):
    """A way out that dsguard knows."""

    title: UserText = Field(description="What it does, an imperative clause without a full stop.")
    safety: Safety = Field(
        description="safe: what is trained stays the same. unsafe: it changes training"
        " arithmetic. display: a person must choose; it is only shown."
    )
    edits: list[EditV1] = Field(description="The edits; they do not overlap.")


class FindingV1(Part):
    """One thing that will fail, hang, be ignored or mean something else."""

    check: int = Field(ge=0, description="The index in checks of the check that it belongs to.")
    code: str = Field(pattern=r"^DSG\d{3}$", description="The code of the rule.")
    rule: str = Field(description="The slug of the rule.")
    severity: Severity = Field(description="How bad it is.")
    confidence: Confidence = Field(description="How sure dsguard is that it is true of this run.")
    consequence: Consequence = Field(
        description="What happens if nothing is changed. refused: DeepSpeed or the front end"
        " stops with an error at start. ignored: the value has no effect. differs: trains with"
        " other numbers than asked for. hangs: the run hangs. late: it fails later (first"
        " step, saving, resuming, memory). note: nothing by itself."
    )
    message: UserText = Field(
        description="One sentence with the numbers in it, without a full stop."
    )
    file: UserText | None = Field(
        description="The file that it stands in; null for a finding in the launch command."
    )
    pointer: UserText | None = Field(
        description="The JSON Pointer (RFC 6901) of what it is about; null where that is no"
        " part of a document, as in the launch command."
    )
    range: RangeV1 = Field(
        description="Where it stands in the file. Where file is null: where it stands in the"
        " text that launch of its check gives, a command typed on one line being line 1."
    )
    because: list[BecauseV1] = Field(
        description="The numbers that it rests on, and where each came from."
    )
    fix: FixV1 | None = Field(description="A way out; null where dsguard knows none.")
    url: str = Field(description="The page of the rule on the web.")


class FailureV1(Part):
    """Why the answer is incomplete: an input that could not be read, or nothing to check."""

    subject: UserText = Field(description="The path or word that it is about.")
    message: UserText = Field(description="What is wrong with it, a clause without a full stop.")
    help: UserText = Field(description="A way out in words; may be empty.")


class SummaryV1(Part):
    """Counts of findings, and whether they are all."""

    error: int = Field(ge=0, description="How many findings of severity error there are.")
    warning: int = Field(ge=0, description="How many findings of severity warning there are.")
    info: int = Field(ge=0, description="How many findings of severity info there are.")
    suppressed: int = Field(ge=0, description="How many findings a comment or setting hides.")
    baselined: int = Field(ge=0, description="How many findings the baseline hides.")
    complete: bool = Field(description="Whether every input was read and every rule ran.")


class ReportV1(Part):
    """What `dsguard check --output-format json` prints."""

    version: Literal[1] = Field(description="The version of this format.")
    tool: ToolV1 = Field(description="The program that wrote the report.")
    checks: list[CheckV1] = Field(description="What was checked and what will run there.")
    findings: list[FindingV1] = Field(
        description="What is wrong: by check, then by place, the config before the launch."
    )
    failures: list[FailureV1] = Field(
        description="The inputs that could not be checked. Empty if summary.complete is true."
    )
    summary: SummaryV1 = Field(description="How much was found.")


def render_json(report: Report) -> str:
    """The report as JSON, indented by two spaces, keys in the order of the models.

    Models of one check or finding at a time are made: those of a repository would take a gigabyte.
    """
    members = {
        "version": 1,
        "tool": _plain(ToolV1(name="dsguard", version=__version__)),
        "checks": (_plain(check_v1(check)) for check in report.checks),
        "findings": (
            _plain(_finding(index, report.checks[index], finding))
            for index, finding in findings_in_order(report)
        ),
        "failures": [
            _plain(FailureV1(subject=failure.subject, message=failure.message, help=failure.help))
            for failure in report.failures
        ],
        "summary": _plain(
            SummaryV1(
                error=report.count(Severity.ERROR),
                warning=report.count(Severity.WARNING),
                info=report.count(Severity.INFO),
                suppressed=report.suppressed,
                baselined=report.baselined,
                complete=report.complete,
            )
        ),
    }
    return json_object(members) + "\n"


def _plain(part: Part) -> dict[str, Any]:
    return part.model_dump(mode="python", exclude_unset=True)


def report_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the report."""
    return published_schema(ReportV1, "dsguard report")


def published_schema(model: type[Part], title: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a format, as it is published."""
    schema = model.model_json_schema(mode="serialization", schema_generator=_SchemaGenerator)
    for part in schema["$defs"].values():
        if "enum" in part:
            # The docstring of an enum is for Python; what its values mean is said where it is used.
            part.pop("description", None)
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": title}


class _SchemaGenerator(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        """A title made from the name of a key would say nothing."""
        return False


def check_v1(check: Check) -> CheckV1:
    """One check as the models have it."""
    return CheckV1(
        config=check.config,
        launch=check.launch,
        target=TargetV1(deepspeed=check.target.version, origin=check.target.origin),
        facts={name: _fact(fact, check) for name, fact in check.facts.items()},
        skipped_rules=[
            SkippedRuleV1(rule=skipped.rule, missing=list(skipped.missing), reason=skipped.reason)
            for skipped in check.skipped
        ],
    )


def _fact(fact: Fact, check: Check) -> KnownV1 | UnknownV1 | ConflictV1:
    def candidates(given: tuple[Candidate, ...]) -> list[CandidateV1]:
        return [
            CandidateV1(value=json_value(one.value), origin=_origin(one.origin, check))
            for one in given
        ]

    if isinstance(fact, Known):
        return KnownV1(
            state="known",
            value=json_value(fact.value),
            origin=_origin(fact.origin, check),
            ignored=candidates(fact.ignored),
        )
    if isinstance(fact, Unknown):
        return UnknownV1(state="unknown", reason=fact.reason, ignored=candidates(fact.ignored))
    assert isinstance(fact, Conflict)
    return ConflictV1(state="conflict", candidates=candidates(fact.candidates))


def _origin(origin: Origin, check: Check) -> OriginV1:
    known: dict[str, Any] = {"kind": origin.kind}
    file = file_of(origin.location.source, check) if origin.location is not None else None
    if origin.location is not None and file is not None:
        source, span, pointer = origin.location
        position = source.position(span.start)
        known["file"] = file
        if pointer is not None:
            known["pointer"] = pointer
        known.update(line=position.line, column=position.column)
    if origin.argument:
        known["argument"] = origin.argument
    if origin.whose:
        known["whose"] = origin.whose
    if origin.facts:
        known["facts"] = list(origin.facts)
    if origin.formula:
        known["formula"] = origin.formula
    return OriginV1(**known)


def _finding(index: int, check: Check, finding: Finding) -> FindingV1:
    return FindingV1(
        check=index,
        code=finding.code,
        rule=finding.rule,
        severity=finding.severity,
        confidence=finding.confidence,
        consequence=finding.consequence,
        message=finding.message,
        file=file_of(finding.location.source, check),
        pointer=finding.location.pointer,
        range=_range(finding.location),
        because=[
            BecauseV1(
                fact=because.fact,
                value=json_value(because.value),
                origin=_origin(because.origin, check),
            )
            for because in finding.because
        ],
        fix=_fix(finding.fix),
        url=rule_url(finding.rule),
    )


def _range(location: Location) -> RangeV1:
    start, end = (location.source.position(offset) for offset in location.span)
    return RangeV1(
        start=PositionV1(line=start.line, column=start.column),
        end=PositionV1(line=end.line, column=end.column),
    )


def _fix(fix: Fix | None) -> FixV1 | None:
    if fix is None:
        return None
    return FixV1(
        title=fix.title,
        safety=fix.safety,
        edits=[EditV1(start=edit.start, end=edit.end, text=edit.text) for edit in fix.edits],
    )
