"""``dsguard server``, spoken to by a real client over standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls", reason="the language server needs pygls")

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from dsguard import __version__
from tests.conftest import Dsguard

LIMIT = 60
"""Seconds after which a server that does not answer fails the test instead of hanging it."""

TEXT = (
    '{\r\n  "_": "😀", "train_micro_batch_size_per_gpu": 2, '
    '"zero_optimisation": {"stage": 2}\r\n}\r\n'
)


class Editor:
    """An editor with one document open."""

    def __init__(self, client: LanguageClient, uri: str) -> None:
        self.client = client
        self.uri = uri
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        self.told: list[str] = []

    async def open(self, text: str) -> list[lsp.Diagnostic]:
        item = lsp.TextDocumentItem(self.uri, "json", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return await self.diagnostics()

    async def diagnostics(self) -> list[lsp.Diagnostic]:
        return list((await self.published.get()).diagnostics)

    async def change(self, version: int, *changes: Any) -> list[lsp.Diagnostic]:
        document = lsp.VersionedTextDocumentIdentifier(version, self.uri)
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(document, list(changes))
        )
        return await self.diagnostics()

    async def hover(self, line: int, character: int) -> lsp.Hover | None:
        at = lsp.HoverParams(self._document, lsp.Position(line, character))
        return await self.client.text_document_hover_async(at)

    async def actions(self, where: lsp.Range) -> list[lsp.CodeAction]:
        context = lsp.CodeActionContext([])
        found = await self.client.text_document_code_action_async(
            lsp.CodeActionParams(self._document, where, context)
        )
        return [action for action in found or [] if isinstance(action, lsp.CodeAction)]

    @property
    def _document(self) -> lsp.TextDocumentIdentifier:
        return lsp.TextDocumentIdentifier(self.uri)


Story = Callable[[Editor], Awaitable[None]]


def play(
    story: Story,
    folder: Path,
    *,
    name: str = "ds_config.json",
    options: Any = None,
    encodings: list[lsp.PositionEncodingKind] | None = None,
) -> lsp.InitializeResult:
    """Start the server as an editor does, run a story and shut it down."""

    async def run() -> lsp.InitializeResult:
        client = LanguageClient("test-editor", "1")
        editor = Editor(client, (folder / name).as_uri())

        @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: lsp.PublishDiagnosticsParams) -> None:
            editor.published.put_nowait(params)

        @client.feature(lsp.WINDOW_SHOW_MESSAGE)
        def told(params: lsp.ShowMessageParams) -> None:
            editor.told.append(params.message)

        await client.start_io(sys.executable, "-m", "dsguard", "server")
        general = lsp.GeneralClientCapabilities(position_encodings=encodings)
        answer = await client.initialize_async(
            lsp.InitializeParams(
                lsp.ClientCapabilities(general=general),
                root_uri=folder.as_uri(),
                initialization_options=options,
            )
        )
        client.initialized(lsp.InitializedParams())
        await story(editor)
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()
        return answer

    return asyncio.run(asyncio.wait_for(run(), LIMIT))


def test_it_introduces_itself(tmp_path: Path) -> None:
    async def story(editor: Editor) -> None:
        pass

    answer = play(story, tmp_path)
    assert answer.server_info == lsp.ServerInfo("dsguard", __version__)
    assert answer.capabilities.position_encoding == lsp.PositionEncodingKind.Utf16
    assert answer.capabilities.hover_provider
    assert answer.capabilities.code_action_provider


@pytest.mark.parametrize(
    ("encoding", "start"),
    [
        (lsp.PositionEncodingKind.Utf16, 50),
        (lsp.PositionEncodingKind.Utf8, 52),
        (lsp.PositionEncodingKind.Utf32, 49),
    ],
)
def test_diagnostics_hover_and_quick_fix(
    tmp_path: Path, encoding: lsp.PositionEncodingKind, start: int
) -> None:
    """Columns count as the client counts them: the emoji before is one, two or four units."""

    async def story(editor: Editor) -> None:
        (diagnostic,) = await editor.open(TEXT)
        assert diagnostic.code == "DSG101 unknown-key"
        assert diagnostic.source == "dsguard"
        assert diagnostic.severity is lsp.DiagnosticSeverity.Warning
        assert list(diagnostic.tags or ()) == [lsp.DiagnosticTag.Unnecessary]
        assert "zero_optimisation is not a key that DeepSpeed knows" in diagnostic.message
        length = len('"zero_optimisation"')
        assert diagnostic.range == lsp.Range(
            lsp.Position(1, start), lsp.Position(1, start + length)
        )

        (action,) = await editor.actions(diagnostic.range)
        assert action.edit is not None
        assert action.edit.changes is not None
        (edit,) = action.edit.changes[editor.uri]
        assert edit.range.start.line == 1
        assert edit.new_text == '"zero_optimization"'
        assert edit.range == diagnostic.range
        assert await editor.actions(lsp.Range(lsp.Position(0, 0), lsp.Position(0, 1))) == []

        clean = await editor.change(
            2, lsp.TextDocumentContentChangePartial(range=edit.range, text=edit.new_text)
        )
        assert clean == []
        hover = await editor.hover(1, start + 3)
        assert hover is not None
        assert isinstance(hover.contents, lsp.MarkupContent)
        assert hover.contents.value.startswith("**zero_optimization**")
        inside = await editor.hover(1, start + length + 5)
        assert inside is not None
        assert isinstance(inside.contents, lsp.MarkupContent)
        assert "1 optimizer states, 2 also gradients" in inside.contents.value
        assert await editor.hover(0, 0) is None

    play(story, tmp_path, encodings=[encoding])


def test_a_launch_from_the_settings_of_the_editor(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    launch = "deepspeed --num_gpus 4 train.py --batch_size 1 --deepspeed_config ds_config.json"

    async def story(editor: Editor) -> None:
        found = await editor.open('{"train_micro_batch_size_per_gpu": 2}')
        (diagnostic,) = [d for d in found if d.code == "DSG207 loader-batch-differs"]
        assert "because: loader batch is 1 (--batch_size)" in diagnostic.message
        assert editor.told == []

    play(story, tmp_path, options={"launch": launch, "target": "0.19.8"})


def test_settings_that_cannot_be_used_are_said_and_left_out(tmp_path: Path) -> None:
    async def story(editor: Editor) -> None:
        assert await editor.open('{"train_micro_batch_size_per_gpu": 0}') != []
        assert editor.told == [
            "dsguard ignores its settings: world_size is a whole number above 0, not 'many'"
        ]

    play(story, tmp_path, options={"worldSize": "many"})


def test_a_broken_config_and_its_end(tmp_path: Path) -> None:
    async def story(editor: Editor) -> None:
        (diagnostic,) = await editor.open('{"train_batch_size": ')
        assert diagnostic.code == "DSG002 syntax-error"
        assert await editor.hover(0, 3) is None
        assert await editor.actions(diagnostic.range) == []
        whole = lsp.TextDocumentContentChangeWholeDocument(text="")
        assert [d.code for d in await editor.change(2, whole)] != []
        closing = lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(editor.uri))
        editor.client.text_document_did_close(closing)
        assert await editor.diagnostics() == []

    play(story, tmp_path)


def test_other_json_is_left_alone(tmp_path: Path) -> None:
    async def story(editor: Editor) -> None:
        assert await editor.open('{"name": "x", "version": "1.0.0"}') == []
        assert await editor.hover(0, 3) is None
        for version, text in enumerate(("{", "[1]", ""), 2):
            whole = lsp.TextDocumentContentChangeWholeDocument(text=text)
            assert await editor.change(version, whole) == []
            assert await editor.hover(0, 1) is None

    play(story, tmp_path, name="package.json")


def test_without_pygls_it_says_what_to_install(
    dsguard: Dsguard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dsguard.cli.commands.server.find_spec", lambda name: None)
    outcome = dsguard("server")
    assert (outcome.code, outcome.out) == (3, "")
    assert "pip install 'dsguard[lsp]'" in outcome.err
