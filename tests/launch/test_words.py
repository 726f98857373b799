from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsguard.launch.context import Command, Word
from dsguard.launch.shell.split import split_commands, split_inside
from dsguard.launch.words import ShellSyntaxError

PLAIN = st.text(alphabet="ab=1-./ \t\\'\"", max_size=24)


def texts(text: str) -> list[list[str]]:
    return [[word.text for word in words] for words in split_commands(text)]


def split_or_nothing(text: str) -> list[tuple[Word, ...]]:
    try:
        return split_commands(text)
    except ShellSyntaxError:
        return []


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("", []),
        ("  # only a comment", []),
        ("deepspeed train.py", [["deepspeed", "train.py"]]),
        ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
        ("a '' b", [["a", "", "b"]]),
        ("--x='1 2'\"3\"4", [["--x=1 234"]]),
        ('a "b\\"c\\d"', [["a", 'b"c\\d']]),
        ("a \\\n  b", [["a", "b"]]),
        ("a b # c", [["a", "b"]]),
        ("a b#c", [["a", "b#c"]]),
        ("cd x && a b; c | d & e", [["cd", "x"], ["a", "b"], ["c"], ["d"], ["e"]]),
        ("a\nb", [["a"], ["b"]]),
        ("(a; b)", [["a"], ["b"]]),
        ("a > log 2>&1", [["a"]]),
        ("a 2> err b &>> log c", [["a", "b", "c"]]),
        ("a 2x 3>f", [["a", "2x"]]),
        ("a 'x > y'", [["a", "x > y"]]),
    ],
)
def test_words_as_a_shell_splits_them(text: str, commands: list[list[str]]) -> None:
    assert texts(text) == commands


@pytest.mark.parametrize(
    ("text", "word", "known"),
    [
        ("a $N", "$N", False),
        ('a "x $N y"', "x $N y", False),
        ("a '$N'", "$N", True),
        ("a \\$N", "$N", True),
        ("a --n=${N:-4}", "--n=${N:-4}", False),
        ("a $(nvidia-smi -L | wc -l)", "$(nvidia-smi -L | wc -l)", False),
        ("a `echo 1`", "`echo 1`", False),
        ("a $((2 * 4))", "$((2 * 4))", False),
        ('a ${X:-"b c"}', '${X:-"b c"}', False),
        ("a ~/x.json", "~/x.json", False),
        ("a x~", "x~", True),
        ("a *.py", "*.py", False),
        ("a '*.py'", "*.py", True),
        ("a 5$", "5$", True),
        ("a <(b c)", "<(b c)", False),
    ],
)
def test_what_only_a_shell_could_expand_is_not_known(text: str, word: str, known: bool) -> None:
    (_, last), *_ = split_commands(text)
    assert (last.text, last.known) == (word, known)


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("a 'b", "single quote", 2),
        ('a b"c', "double quote", 3),
        ("a \\", "backslash", 2),
        ("a $(b", "expansion", 2),
        ("a `b", "backtick", 2),
        ("a && b", "more than one command", 5),
    ],
)
def test_an_unbalanced_command_line_says_what_and_where(
    text: str, message: str, offset: int
) -> None:
    with pytest.raises(ShellSyntaxError, match=message) as error:
        Command.of_text(text)
    assert error.value.offset == offset


@settings(max_examples=300)
@given(PLAIN)
def test_plain_quoting_is_read_as_shlex_reads_it(text: str) -> None:
    # A backslash before a line end and comments are the shell's, not shlex's; neither occurs here.
    try:
        expected = shlex.split(text)
    except ValueError:
        with pytest.raises(ShellSyntaxError):
            split_commands(text)
        return
    words = [word for command in split_commands(text) for word in command]
    assert [word.text for word in words] == expected
    for word in words:
        assert shlex.split(text[word.span.start : word.span.end]) == [word.text]


@settings(max_examples=300)
@given(st.text(alphabet="ab $(){}`'\"\\\n<>&|;#~*2=", max_size=30))
def test_any_text_is_split_or_refused_and_every_word_stands_in_it(text: str) -> None:
    end = 0
    for word in (word for command in split_or_nothing(text) for word in command):
        assert end <= word.span.start < word.span.end <= len(text)
        end = word.span.end


@settings(max_examples=200)
@given(st.lists(st.text(max_size=8), max_size=5))
def test_words_of_an_argument_list_slice_back(words: list[str]) -> None:
    command = Command.of_words(words)
    assert [word.text for word in command.words] == words
    for word in command.words:
        assert shlex.split(command.source.slice(word.span)) == [word.text]


def test_words_inside_a_word_stand_in_the_outer_text() -> None:
    text = """bash -c "torchrun --n '4 5' \\"x\\" \\$N" """
    ((_, _, inside),) = split_commands(text)
    ((*words, last),) = split_inside(text, inside)
    assert [(w.text, text[w.span.start : w.span.end]) for w in words] == [
        ("torchrun", "torchrun"),
        ("--n", "--n"),
        ("4 5", "'4 5'"),
        ("x", '"x\\"'),
    ]
    assert (last.text, last.known) == ("$N", False)
