"""The server: diagnostics while typing, hover over keys, fixes as quick fixes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from packaging.version import Version
from pygls import uris
from pygls.lsp.server import LanguageServer

from dsguard import __version__
from dsguard.api import check_text
from dsguard.facts.target import resolve_target
from dsguard.model.finding import Consequence, Finding, Safety, Severity
from dsguard.model.source import Source, Span
from dsguard.reading.errors import HjsonSyntaxError
from dsguard.reading.hjson import parse
from dsguard.render.rule_page import rule_url
from dsguard.render.wording import fix_title, notes, reason
from dsguard.schema.sniff import looks_like_deepspeed, named_like_config
from dsguard.server.hover import explain_key, key_at
from dsguard.server.positions import to_offset, to_range

if TYPE_CHECKING:
    from pygls.workspace import TextDocument

_SEVERITY = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFO: lsp.DiagnosticSeverity.Information,
}

_OPTIONS = {
    "launch": "launch",
    "target": "target",
    "worldSize": "world_size",
    "frontEnd": "front_end",
}
"""What a client may say in its initialization options, and the arguments of the API."""


class DsguardServer(LanguageServer):
    """Checks the DeepSpeed configs that an editor has open.

    ``options`` are arguments of :func:`dsguard.check_text` that the client gave at its start.
    """

    def __init__(self) -> None:
        super().__init__("dsguard", __version__)
        self.options: dict[str, Any] = {}

    def findings(self, document: TextDocument) -> list[Finding]:
        """What is wrong in a document; nothing where it is no DeepSpeed config."""
        if not _is_config(Source(document.uri, document.source)):
            return []
        path, folder = _path(document), self._folder(document)
        name = path.relative_to(folder) if path.is_relative_to(folder) else path
        report = check_text(document.source, name=str(name), folder=folder, **self.options)
        return [finding for _, finding in report.findings]

    def diagnostic(self, finding: Finding, document: TextDocument) -> lsp.Diagnostic:
        """A finding as an editor shows it; one about the launch stands at the top of the file."""
        codec = self.workspace.position_codec
        source, span, _ = finding.location
        here = source.text == document.source
        url, folder = rule_url(finding.rule), self._folder(document)
        related = [
            lsp.DiagnosticRelatedInformation(
                lsp.Location(
                    (folder / at.source.name).as_uri(), to_range(at.source, at.span, codec)
                ),
                reason(because),
            )
            for because in finding.because
            if (at := because.origin.location) is not None
            and (at.source.is_file or at.source.text == document.source)
        ]
        return lsp.Diagnostic(
            range=to_range(source, span, codec) if here else _TOP,
            message="\n".join([finding.message, *(f"{k}: {text}" for k, text in notes(finding))]),
            severity=_SEVERITY[finding.severity],
            code=f"{finding.code} {finding.rule}",
            code_description=lsp.CodeDescription(url),
            source="dsguard",
            tags=[lsp.DiagnosticTag.Unnecessary]
            if finding.consequence is Consequence.IGNORED and here
            else None,
            related_information=related or None,
        )

    def publish(self, uri: str) -> None:
        """Tell the client what is wrong in a document."""
        document = self.workspace.get_text_document(uri)
        found = [self.diagnostic(finding, document) for finding in self.findings(document)]
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri, found, document.version)
        )

    def _folder(self, document: TextDocument) -> Path:
        """Where the launch is run from: the root of the workspace, or where the file lies."""
        root = self.workspace.root_path
        return Path(root) if root else _path(document).parent


_TOP = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 1))


def make_server() -> DsguardServer:
    """The server with everything that it answers."""
    server = DsguardServer()

    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        given = params.initialization_options
        options = given if isinstance(given, dict) else {}
        chosen = {_OPTIONS[key]: options[key] for key in _OPTIONS if options.get(key) is not None}
        try:
            check_text("{}", **chosen)
        except (TypeError, ValueError) as error:
            # Without them dsguard still says most of what it knows.
            message = f"dsguard ignores its settings: {error}"
            server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, message))
        else:
            server.options = chosen

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        server.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        gone = lsp.PublishDiagnosticsParams(params.text_document.uri, [])
        server.text_document_publish_diagnostics(gone)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        codec = server.workspace.position_codec
        document = server.workspace.get_text_document(params.text_document.uri)
        source = Source(document.uri, document.source)
        if not _is_config(source):
            return None
        try:
            key = key_at(parse(source), to_offset(source, params.position, codec))
        except HjsonSyntaxError:
            return None
        release = Version(resolve_target(server.options.get("target")).version)
        text = explain_key(key[0], release) if key is not None else None
        if key is None or text is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, text)
        return lsp.Hover(content, to_range(source, key[1], codec))

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix]),
    )
    def code_actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document = server.workspace.get_text_document(params.text_document.uri)
        codec = server.workspace.position_codec
        actions = []
        for finding in server.findings(document):
            diagnostic = server.diagnostic(finding, document)
            source, fix = finding.location.source, finding.fix
            if fix is None or not fix.edits or source.text != document.source:
                continue
            if not _touch(diagnostic.range, params.range):
                continue
            edits = [
                lsp.TextEdit(to_range(source, Span(edit.start, edit.end), codec), edit.text)
                for edit in fix.edits
            ]
            actions.append(
                lsp.CodeAction(
                    title=fix_title(fix),
                    kind=lsp.CodeActionKind.QuickFix,
                    diagnostics=[diagnostic],
                    is_preferred=fix.safety is Safety.SAFE,
                    edit=lsp.WorkspaceEdit(changes={document.uri: edits}),
                )
            )
        return actions

    return server


def _path(document: TextDocument) -> Path:
    """Where a document lies; one that was never saved has no place but the current folder."""
    return Path(uris.to_fs_path(document.uri) or uris.urlparse(document.uri)[2]).absolute()


def _is_config(source: Source) -> bool:
    """Whether a document is meant for DeepSpeed: by its keys, or by its name while it is broken."""
    try:
        return looks_like_deepspeed(parse(source).value) or named_like_config(source.name)
    except HjsonSyntaxError:
        return named_like_config(source.name)


def _touch(one: lsp.Range, other: lsp.Range) -> bool:
    def key(position: lsp.Position) -> tuple[int, int]:
        return position.line, position.character

    return key(one.start) <= key(other.end) and key(other.start) <= key(one.end)
