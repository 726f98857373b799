"""Walking through a script in the order in which bash would run it.

Every command is met with what is surely known at its place. Of most branches and loops nobody
knows whether they run: their commands are met all the same, and what they assign differently is
not known afterwards. Functions are walked where they are called; one that nobody calls at the end.
Nothing is executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, field

from dsguard.launch.prefixes import shell_text
from dsguard.launch.shell.assign import (
    BUILTINS,
    assign,
    calculate,
    declare,
    exported,
    set_positionals,
)
from dsguard.launch.shell.batch import set_by_batch_system
from dsguard.launch.shell.conditions import choose, decide, decide_block
from dsguard.launch.shell.expand import Expander, Field, placed_words
from dsguard.launch.shell.handed import (
    Handed,
    Where,
    handed_as_input,
    handed_in_words,
    spaced,
)
from dsguard.launch.shell.parse import DECLARATIONS, parse
from dsguard.launch.shell.slurm import command_line, directives, job_state
from dsguard.launch.shell.state import Array, Definition, State, Variable, merged
from dsguard.launch.shell.syntax import (
    Arithmetic,
    Block,
    Calculation,
    Case,
    Chain,
    Function,
    Group,
    HereDocument,
    Hidden,
    If,
    Loop,
    Negation,
    Node,
    Parameter,
    Part,
    Pipeline,
    RawWord,
    Redirected,
    Simple,
    Test,
)
from dsguard.launch.shell.text import Text, is_known, text_of
from dsguard.launch.shell.written import WrittenFile, files_written
from dsguard.model.source import Source, Span

if TYPE_CHECKING:
    from dsguard.launch.words import Word

_NodeT = TypeVar("_NodeT")
_AnswerT = TypeVar("_AnswerT")

_BUDGET = 50_000
"""How much work one script is worth: commands walked, and variables copied for branches."""
_DEEPEST = 12
"""How many functions and texts may run one another."""
_MOST_WORDS = 2000
_WORDS_A_STEP = 10
"""So many words of a command, or variables exported to it, are as much work as a command."""
_CHARACTERS_A_STEP = 100
"""So many characters that are walked, inserted for variables or exported are, too."""
_SETS_UP = re.compile(
    r"(^|/)(activate|conda\.sh|mamba\.sh|micromamba\.sh|\.bashrc|\.bash_profile|\.profile|"
    r"\.zshrc|setvars\.sh)$|^/etc/|/Modules/|/lmod/|/modules/init/"
)
"""Files to ``source`` that set up programs, not the variables of a training script."""
_FIRST_LINE = 200
_RESIZES = re.compile(r"-[nN]|--ntasks|--nodes|--gpus|--gres")
_ESCAPED = re.compile(r"\\[$`\\]")
"""Inside backticks a backslash takes the meaning from these."""
_HOOK = re.compile(r"(conda|mamba|micromamba|pyenv|ssh-agent|direnv|modulecmd)\b")
_SUCCEEDS = frozenset(
    (
        ":", ".", "cd", "conda", "declare", "echo", "eval", "export", "local", "mkdir", "ml",
        "module", "printf", "pushd", "readonly", "set", "shopt", "source", "true", "typeset",
        "ulimit", "umask", "unset",
    )
)  # fmt: skip
"""Commands of which it is taken for granted that they succeed."""
_HARMLESS = (
    ":", "[", "alias", "break", "continue", "echo", "hash", "test", "trap", "true", "type",
    "ulimit", "umask", "wait",
)  # fmt: skip
"""Builtins whose words are never run."""


class Met(NamedTuple):
    """A command that the script runs: its words, the variables exported to it, its folder."""

    words: tuple[Word, ...]
    exported: tuple[Word, ...]
    folder: str | None


class Walked(NamedTuple):
    """The commands of a script and the files that they write.

    Without ``whole`` there may be more, and the walk stopped.
    """

    met: list[Met]
    whole: bool
    written: list[WrittenFile]


def walk(texts: Iterable[tuple[Text, State]], source: Source | None = None) -> Walked:
    """All commands of a file: of each of its texts, from the state in which it starts.

    The texts know nothing of one another, but share what work the file is worth. ``source`` is
    the file that they stand in, for jobs that are written in it.
    """
    met: list[Met] = []
    written: list[WrittenFile] = []
    spent, whole = 0, True
    for text, state in texts:
        walker = _Walker(source or Source("<script>", text.text, is_file=False), spent=spent)
        try:
            walker.text(text, state)
            for function in [f for f in walker.defined.values() if id(f) not in walker.called]:
                walker.function(function, None, state)
        except _BudgetError:
            whole = False
        written += [file._replace(at=len(met) + file.at) for file in walker.written]
        met += walker.met
        spent = walker.spent
        if not whole:
            break
    return Walked(met, whole, written)


class _BudgetError(Exception):
    """The script makes more work than any launch script does."""


class _Walker(Struct):
    file: Source
    met: dict[Met, None] = field(default_factory=dict)
    written: list[WrittenFile] = field(default_factory=list)
    defined: dict[int, Definition] = field(default_factory=dict)
    called: set[int] = field(default_factory=set)
    perhaps: dict[str, Definition] = field(default_factory=dict)
    returns: list[list[State]] = field(default_factory=list)
    locals: list[dict[str, Variable | None]] = field(default_factory=list)
    outer: tuple[Field, ...] = ()
    depth: int = 0
    trial: bool = False
    spent: int = 0

    def text(self, text: Text, state: State) -> None:
        """Walk a text in a state, which it changes."""
        self._spend(len(text.text) // _CHARACTERS_A_STEP)
        _Walk(self, text).block(parse(text.text).block, state)

    def function(
        self, function: Definition, arguments: Sequence[Field] | None, state: State
    ) -> None:
        """Walk a call of a function; without arguments, they are not known."""
        if self.depth >= _DEEPEST:
            return
        self.called.add(id(function))
        body, text = function
        before = state.positionals, state.more_positionals
        set_positionals(state, arguments)
        state.ended = False if arguments is None else state.ended
        self.depth += 1
        self.returns.append([])
        self.locals.append({})
        _Walk(self, text).node(body, state)
        for other in self.returns.pop():
            state.become(merged(state, other))
        for local, variable in self.locals.pop().items():
            state.variables.pop(local, None)
            if variable is not None:
                state.variables[local] = variable
        self.depth -= 1
        state.positionals, state.more_positionals = before

    def branch(self, state: State) -> State:
        """A copy of a state for something that may not happen, or happens elsewhere."""
        self._spend(1 + len(state.variables) + len(state.functions))
        return state.copy()

    def step(self, more: int = 0) -> None:
        """One command was met."""
        self._spend(1 + more)

    def characters(self, number: int) -> None:
        """So many characters were handed on besides those that are written."""
        self._spend(number // _CHARACTERS_A_STEP)

    def _spend(self, work: int) -> None:
        self.spent += work
        if self.spent > _BUDGET:
            raise _BudgetError


class _Walk:
    """The walk through one text."""

    def __init__(self, walker: _Walker, text: Text) -> None:
        self.walker = walker
        self.source = text

    def block(self, block: Block, state: State) -> None:
        for chain in block:
            if state.ended:
                return
            self._chain(chain, state)

    def node(self, node: Node, state: State) -> None:
        self.walker.step()
        if isinstance(node, Simple):
            self._simple(node, state)
        elif isinstance(node, Chain):
            self._chain(node, state)
        elif isinstance(node, Pipeline):
            for command in node.commands:
                self.node(command, self.walker.branch(state))
        elif isinstance(node, Group):
            self.block(node.body, self.walker.branch(state) if node.subshell else state)
        elif isinstance(node, If):
            self._if(node, state)
        elif isinstance(node, Loop):
            self._loop(node, state)
        elif isinstance(node, Case):
            self._case(node, state)
        elif isinstance(node, Negation):
            self.node(node.command, state)
        elif isinstance(node, Redirected):
            self._write([], node.outputs, Expander(self.source, state))
            self.node(node.command, state)
        elif isinstance(node, Function):
            # A loop is walked twice, and a function may be called twice: one definition is made.
            made = Definition(node.body, self.source)
            function = self.walker.defined.setdefault(id(node.body), made)
            state.functions[node.name] = self.walker.perhaps[node.name] = function
        elif isinstance(node, Calculation):
            calculate(node.text, state)
        else:
            assert isinstance(node, Test)
            self._substitutions(node.words, state)

    def _chain(self, chain: Chain, state: State) -> None:
        if chain.background:
            state = self.walker.branch(state)
        first = chain.commands[0]
        outcome = self._outcome(first, state)
        self.node(first, state)
        for joint, command in zip(chain.joints, chain.commands[1:], strict=True):
            runs = outcome if joint == "&&" or outcome is None else not outcome
            other = self.walker.branch(state)
            following = self._outcome(command, other)
            self.node(command, other)
            if runs and not other.ended:
                state.become(other)
                outcome = following
            elif runs is not False:
                state.become(merged(state, other))
                outcome = None

    def _outcome(self, node: Node, state: State) -> bool | None:
        """Whether a command succeeds, where that is sure or taken for granted."""
        if _succeeds(node):
            return True
        return self._certain(decide, node, state)

    def _if(self, node: If, state: State) -> None:
        results: list[State] = []
        decided = False
        for condition, body in node.branches:
            self.block(condition, state)
            holds = self._certain(decide_block, condition, state)
            result = self._branch(body, state)
            if holds is not False and not decided:
                results.append(result)
                # One that ends the script is for those who call it wrongly.
                decided = holds is True and not result.ended
        otherwise = self._branch(node.otherwise or (), state)
        self._join(state, results if decided else [*results, otherwise])

    def _case(self, node: Case, state: State) -> None:
        self._substitutions([node.word], state)
        chosen = self._certain(choose, node, state)
        branches = [self._branch(body, state) for _, body in node.arms]
        if chosen is None or (chosen < len(branches) and branches[chosen].ended):
            self._join(state, branches if node.complete else [*branches, state.copy()])
        elif chosen < len(branches):
            state.become(branches[chosen])

    def _certain(
        self, judge: Callable[[_NodeT, Expander], _AnswerT], node: _NodeT, state: State
    ) -> _AnswerT:
        """What is certain of a condition; its words are expanded as those of a command are."""
        expander = Expander(self.source, state, by_itself=True)
        answer = judge(node, expander)
        self.walker.characters(expander.inserted)
        return answer

    def _branch(self, body: Block, state: State) -> State:
        branch = self.walker.branch(state)
        self.block(body, branch)
        return branch

    def _join(self, state: State, results: Sequence[State]) -> None:
        if not results:
            return
        joined = results[0]
        for result in results[1:]:
            joined = merged(joined, result)
        state.become(joined)

    def _loop(self, node: Loop, state: State) -> None:
        """A loop runs any number of times: what it changes is not known in it, nor after it."""
        self.block(node.condition, state)
        if self._certain(decide_block, node.condition, state) is False:
            # Its commands are met all the same, but change nothing that follows.
            state = self.walker.branch(state)
        self._substitutions(node.words or (), state)
        expander = Expander(self.source, state)
        values = expander.fields(node.words or ())
        self.walker.characters(expander.inserted)
        if node.name:
            only = values[0].chunks if len(values) == 1 and is_known(values[0].chunks) else None
            held = state.variables.get(node.name)
            if held is not None and isinstance(held.content, Array):
                only = None
            state.assign(node.name, only, Span(0, 0))
        before = self.walker.branch(state)
        if not self.walker.trial:
            self.walker.trial = True
            after = self._branch(node.body, state)
            self.walker.trial = False
            for name in _changed(before, after):
                state.forget(name)
            if after.folder != before.folder:
                state.folder = None
            changed = after.positionals is not before.positionals
            if changed and after.positionals != before.positionals:
                set_positionals(state, None)
        self.block(node.body, state)
        state.ended = False
        for name in _changed(before, state):
            state.forget(name)
        if node.name:
            state.forget(node.name)
        state.become(merged(before, state))

    def _simple(self, node: Simple, state: State) -> None:
        for assignment in node.assignments:
            self._substitutions([assignment.value] if assignment.value else (), state)
            self._substitutions(assignment.items or (), state)
        here = [node.here] if node.here is not None else []
        self._substitutions([*node.words, *here, *node.targets], state)
        expander = Expander(self.source, state)
        fields = expander.fields(node.words)
        self.walker.step(len(fields) // _WORDS_A_STEP)
        before = expander.inserted
        self.walker.characters(before)
        first = len(self.walker.written)
        self._write(fields, node.outputs, expander, node.documents)
        noted = range(first, len(self.walker.written))
        self._run(node, fields, expander)
        for index in noted:  # what it writes is there for the commands behind it, not for itself
            file = self.walker.written[index]
            self.walker.written[index] = file._replace(at=len(self.walker.met))
        self.walker.characters(expander.inserted - before)

    def _write(
        self,
        fields: Sequence[Field],
        outputs: Sequence[RawWord],
        expander: Expander,
        documents: Sequence[HereDocument] = (),
    ) -> None:
        """Note the files that a command writes.

        A loop is walked a second time for what its first turn changes; only that counts.
        """
        if self.walker.trial:
            return
        before = expander.inserted
        into = [expander.value(word) for word in outputs]
        self.walker.characters(expander.inserted - before)
        texts = (self._written_document(one) for one in documents)
        words = [field.chunks for field in fields[:_MOST_WORDS]]
        at, folder = len(self.walker.met), expander.state.folder
        for path, known in files_written(words, into, texts):
            self.walker.written.append(WrittenFile(path, known, folder, at))

    def _run(self, node: Simple, fields: list[Field], expander: Expander) -> None:
        state = expander.state
        if not fields:
            for assignment in node.assignments:
                assign(expander, assignment)
            return
        name = text_of(fields[0].chunks) if is_known(fields[0].chunks) else ""
        if name in DECLARATIONS:
            declare(expander, node, fields, self.walker.locals[-1] if self.walker.locals else None)
        elif name in state.functions:
            self.walker.function(state.functions[name], fields[1:], state)
        elif name in self.walker.perhaps:
            # Only some branches define it.
            other = self.walker.branch(state)
            self.walker.function(self.walker.perhaps[name], fields[1:], other)
            state.become(merged(state, other))
        elif name in BUILTINS:
            for document in node.documents:
                self._read_document(document)
            BUILTINS[name](expander, node, fields)
        elif name in _CONTROL:
            _CONTROL[name](self, fields, state)
        elif name not in _HARMLESS:
            self._meet([*self._settings(node, expander), *fields], expander, node)
            state.ended = state.ended or (name == "exec" and len(fields) > 1)

    def _substitutions(self, words: Iterable[RawWord], state: State) -> None:
        """Walk the commands of ``$(...)``: each runs in a shell of its own."""
        for word in words:
            for part in word.parts:
                self._substitution(part, state)

    def _substitution(self, part: Part, state: State) -> None:
        if isinstance(part, Parameter):
            for inner in part.argument:
                self._substitution(inner, state)
        elif isinstance(part, Arithmetic):
            for inner in part.parts:
                self._substitution(inner, state)
        elif isinstance(part, Hidden) and self.source.known(part.start, part.end):
            if part.commands:
                self.block(part.commands, self.walker.branch(state))
            elif self.source.text.startswith("`", part.start):
                inside = Text(self.source.slice(part.start + 1, part.end - 1))
                if not _ESCAPED.search(inside.text):
                    self._deeper(inside, self.walker.branch(state))

    def _deeper(self, text: Text, state: State, before: Sequence[Field] = ()) -> None:
        """Walk a text that stands in this one; ``before`` starts the shell that runs it."""
        if self.walker.depth >= _DEEPEST:
            return
        outer = self.walker.outer
        self.walker.outer = (*outer, *before)
        self.walker.depth += 1
        self.walker.text(text, state)
        self.walker.depth -= 1
        self.walker.outer = outer

    def _hand(self, handed: Handed, expander: Expander, node: Simple) -> None:
        """Walk a text that a command hands to another shell."""
        if handed.where is Where.HERE:
            self._deeper(handed.text, _child(expander, node, handed.before), handed.before)
            return
        outer, self.walker.outer = self.walker.outer, ()
        if handed.where is Where.APART:
            self._deeper(handed.text, State(folder=None, foreign=True))
        else:
            options = (
                *directives(self.walker.file, handed.text),
                *command_line(self.walker.file, placed_words(handed.before)[1:]),
            )
            state = job_state(options, expander.state)
            set_by_batch_system(state, handed.text)
            self._deeper(handed.text, state)
        self.walker.outer = outer

    def _input(self, node: Simple, fields: Sequence[Field], expander: Expander) -> Iterable[Handed]:
        """The texts for a shell that a command gets through standard input."""
        handed = handed_as_input(fields, "")
        if node.here is not None and handed is not None:
            yield handed._replace(text=Text(expander.value(node.here)))
        for document in node.documents:
            written = self.source.text[document.start : document.end]
            handed = handed_as_input(fields, written[:_FIRST_LINE].lstrip("\t"))
            if handed is None:
                continue
            self._read_document(document)
            lines = expander.document(document)
            if lines is not None:
                yield handed._replace(text=lines)

    def _written_document(self, document: HereDocument) -> str:
        self._read_document(document)
        return self.source.text[document.start : document.end]

    def _read_document(self, document: HereDocument) -> None:
        """Expanding one is work of its own."""
        written = self.source.text[document.start : document.end]
        self.walker.step(
            len(written) // _CHARACTERS_A_STEP + written.count("$") + written.count("`")
        )

    def _settings(self, node: Simple, expander: Expander) -> list[Field]:
        """``NAME=value`` before a command, as words of it."""
        found: list[Field] = []
        for assignment in node.assignments:
            if assignment.value is None:
                continue
            name = self.source.slice(assignment.start, assignment.value.start)
            places = self.source.places(assignment.start, assignment.end)
            found.append(Field((*name, *expander.value(assignment.value)), (places,)))
        return found

    def _meet(self, fields: list[Field], expander: Expander, node: Simple) -> None:
        """A command that is no builtin; the text of ``bash -c`` is walked in its place."""
        state = expander.state
        self.walker.step((len(fields) + len(state.variables)) // _WORDS_A_STEP)
        for handed in self._input(node, fields, expander):
            self._hand(handed, expander, node)
        handed_over = handed_in_words(fields)
        words = placed_words(fields[:_MOST_WORDS])
        inside = shell_text(words) if handed_over is None else None
        if handed_over is not None:
            self._hand(handed_over, expander, node)
        elif inside is not None and self.walker.depth < _DEEPEST:
            shell, at = inside
            child = _child(expander, node, fields[:shell])
            self._deeper(Text(fields[at].chunks), child, fields[:shell])
        elif not self.walker.trial:
            everything = placed_words([*self.walker.outer, *fields][:_MOST_WORDS])
            variables = exported(state)
            self.walker.characters(sum(len(word.text) for word in variables))
            self.walker.met[Met(everything, variables, state.folder)] = None

    def cd(self, fields: list[Field], state: State) -> None:
        target = fields[-1].chunks
        text = text_of(target)
        path = PurePosixPath(text)
        plain = is_known(target) and text and not text.startswith("-") and not path.is_absolute()
        if len(fields) != 2 or not plain or state.folder is None:
            state.folder = None
        else:
            folder = PurePosixPath(state.folder) / path
            state.folder = "" if str(folder) == "." else str(folder)

    def source_file(self, fields: list[Field], state: State) -> None:
        """What a sourced file sets is not known: the variables that nobody set may be set now."""
        path = text_of(fields[1].chunks) if len(fields) > 1 else ""
        if not _SETS_UP.search(path):
            state.foreign = True

    def evaluate(self, fields: list[Field], state: State) -> None:
        text = Text(spaced([field.chunks for field in fields[1:]]))
        hidden = [chunk.text for chunk in text.chunks if not chunk.known]
        if not all(_HOOK.search(part) for part in hidden):
            state.foreign = True
        self._deeper(text, state)

    def leave(self, fields: list[Field], state: State) -> None:
        if text_of(fields[0].chunks) == "return" and self.walker.returns:
            self.walker.returns[-1].append(self.walker.branch(state))
        state.ended = True


_Handler: TypeAlias = Callable[[_Walk, list[Field], State], None]
_CONTROL: dict[str, _Handler] = {
    "cd": _Walk.cd,
    "pushd": _Walk.cd,
    "popd": _Walk.cd,
    "source": _Walk.source_file,
    ".": _Walk.source_file,
    "eval": _Walk.evaluate,
    "exit": _Walk.leave,
    "return": _Walk.leave,
}


def _child(expander: Expander, node: Simple, before: Sequence[Field]) -> State:
    """The shell that a command starts; ``srun`` counts anew where it is asked for tasks."""
    child = expander.state.child()
    for assignment in node.assignments:
        if assignment.value is not None:
            place = expander.text.places(assignment.start, assignment.end)[-1]
            child.assign(assignment.name, expander.value(assignment.value), place, export=True)
    texts = [text_of(field.chunks) for field in before]
    if "srun" in texts and any(_RESIZES.match(text) for text in texts):
        for name in list(child.variables):
            if name.startswith("SLURM_"):
                child.forget(name)
    return child


def _succeeds(node: Node) -> bool:
    if not isinstance(node, Simple):
        return False
    return not node.words or node.words[0].plain in _SUCCEEDS


def _changed(before: State, after: State) -> list[str]:
    names = {**before.variables, **after.variables}
    return [
        name
        for name in names
        if (old := before.variables.get(name)) is not (new := after.variables.get(name))
        and (old is None or not old.same(new))
    ]
