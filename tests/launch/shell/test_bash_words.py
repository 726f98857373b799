"""Small scripts: what dsguard makes of their words is what bash makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsguard.launch.shell.state import State
from dsguard.launch.shell.text import Text
from dsguard.launch.shell.walk import walk
from dsguard.launch.words import Word

from .real_bash import agrees, commands_run, needs_bash


def commands(script: str) -> list[tuple[Word, ...]]:
    """The words of every command in which ``deepspeed`` is the program."""
    met = walk([(Text.written(script, 0, len(script)), State())]).met
    return [m.words for m in met if "deepspeed" in [w.text for w in m.words[:4]]]


KNOWN = [
    # Quotes.
    "deepspeed a 'b c' \"d e\" f\\ g",
    "deepspeed '' \"\" a''b \"a\"'b'c",
    'deepspeed "a\\"b\\c\\$d" \'a\\b\' a\\\\b',
    "deepspeed $'a\\tb\\'c' \"it's\" 'say \"x\"'",
    "deepspeed a#b # c",
    "deepspeed a\\\nb \\\n  c",
    "deepspeed {} a=b --x=y a,b {a}",
    "deepspeed [1,2] a@b a%b a^b a:b ! %",
    # Parameters.
    "A=1; deepspeed $A ${A} \"$A\" x$A.y '$A' \\$A",
    'A=x B=y; deepspeed $A$B "$A $B" ${A}_${B}',
    "A='1 2  3'; deepspeed $A \"$A\" x$A",
    "A=' 1 2 '; deepspeed x${A}y",
    'A=; deepspeed $A "$A" x$A',
    "A=1; A=$A$A; A+=2; deepspeed $A",
    "A=1\nexport A B=2\nreadonly C=3\ndeclare -x D=4\ntypeset E=5\ndeepspeed $A $B $C $D $E",
    "unset A; deepspeed ${A:-x} ${A-y} $A ${A:+z}",
    'A=; deepspeed ${A:-x} "${A-y}" ${A:+z} "${A+w}"',
    "A=1; deepspeed ${A:-x} ${A-y} ${A:+z} ${A+w} ${A:?no} ${A:=u}",
    "deepspeed ${NEVER:-1} ${NEVER:=2} $NEVER",
    ': ${NEVER:=a b}; deepspeed $NEVER "$NEVER"',
    'deepspeed ${NEVER:-a b} "${NEVER:-a b}" ${NEVER:-\'a b\'} ${NEVER:-"a b"} "${NEVER:-\'a\'}"',
    "A=x; deepspeed ${NEVER:-$A} ${NEVER:-${OTHER:-$A}} ${NEVER:-a\\}b}",
    "A=abc; deepspeed ${#A} $((${#A} + 1))",
    'deepspeed ${1:-8} ${2-9} ${3:+x} "${4:-}"',
    'set -- a \'b c\'; deepspeed $1 "$2" $2 "$@" $#',
    'set -- a b c; shift; deepspeed "$@" $1',
    # Arrays.
    'A=(a \'b c\' d); deepspeed "${A[@]}" ${A[@]} "${A[*]}" $A ${A[1]} "${A[1]}" ${#A[@]}',
    'A=(a); A+=(b \'c d\'); deepspeed x"${A[@]}"y "${A[@]}"',
    'A=(\n  a # one\n  "b c"\n\n  d\n)\ndeepspeed "${A[@]}"',
    'A=(); deepspeed "${A[@]}" ${A[@]} "${A[*]}" x"${A[@]}"',
    'A=(a b); B=("${A[@]}" c); deepspeed "${B[@]}" ${#B[*]}',
    'X=\'a b\'; A=($X "$X"); deepspeed "${A[@]}"',
    'A=x; A+=(y); deepspeed "${A[@]}"',
    "IFS=, read -ra A <<< '1,2,3'; deepspeed ${#A[@]} ${A[2]}",
    'X=0,1; IFS=\',\' read -r -a A <<< "$X"; deepspeed ${#A[@]} "${A[@]}"',
    'A=; A+=(y); deepspeed "${A[@]}" ${#A[@]}',
    'unset A; A+=(y); deepspeed "${A[@]}"',
    'unset A; A+=y; deepspeed $A "${A[@]}"',
    'unset A; deepspeed "${A[@]}" ${#A[@]} "$A"',
    'A=(1 2 3); A=x; deepspeed $A "${A[@]}"',
    # Arithmetic.
    "A=6 B=4; deepspeed $((A*B)) $(( $A / $B )) $((A % B)) $((A-B*2)) $(((A+B)*2)) $((2**3))",
    "A=7; deepspeed $((-A / 2)) $((-A % 2)) $((0x10)) $((010)) $((+A)) $(( A ))",
    "A=; deepspeed $((A + 1)) $(( ))",
    # Running texts.
    "C='deepspeed a \"b c\"'; $C",
    "C='deepspeed a \"b c\"'; eval $C",
    "C='deepspeed a $((1+1)) $X'; X=5; eval \"$C\"",
    "C=\"deepspeed a 'b c' \\$X\"; X='1 2'; eval \"$C\"",
    "bash -c 'deepspeed a \"b c\"; deepspeed d'",
    "export X=1; bash -c \"deepspeed $X \\$X '\\$X'\"",
    'A=2; bash -c "export B=3; deepspeed $A \\$B"',
    "srun -n 2 bash -c 'deepspeed a'",
    # Flow.
    "A=1; if true; then A=1; else A=1; fi; deepspeed $A",
    "A=1; f() { A=2; }; false && f; deepspeed $A",
    'if [ -z "$N" ]; then N=8; fi; deepspeed $N',
    "[ -z $N ] && N=8; [[ -n $M ]] || M=2; deepspeed $N $M",
    'if ! [ -n "$1" ]; then N=1; else N=2; fi; deepspeed $N',
    "N=4; while [[ $# -gt 0 ]]; do case $1 in --n) N=$2; shift 2;; *) exit 1;; esac; done\n"
    "deepspeed $N",
    'M=b; if [ $M = a ]; then N=1; elif [ "$M" == b ]; then N=2; else N=3; fi; deepspeed $N',
    "M=b; [[ $M != a ]] && N=1 || N=2; deepspeed $N",
    "M=3; test $M -gt 2 -o x; if test $M -gt 2; then N=1; fi; deepspeed $N",
    "S=7b; case $S in 7b|8b) N=1;; 13b) N=2;; *) exit;; esac; deepspeed $N",
    "S=z; case $S in 7b) N=1;; esac; deepspeed ${N:-5}",
    "case $1 in '') N=1;; *) N=2;; esac; deepspeed $N",
    'if [ -z "$1" ] || [ -z "$2" ]; then N=1; else N=2; fi; deepspeed $N',
    "true || N=1; false && N=2; false || N=3; true && M=4; deepspeed $N $M",
    "if true && false; then N=1; else N=2; fi; deepspeed $N",
    "A=1; (A=2; deepspeed $A); deepspeed $A",
    "A=1; { A=2; }; deepspeed $A",
    "A=1; A=2 true; deepspeed $A",
    "A=1 && B=2 && deepspeed $A $B",
    "A=1; echo x | A=2; deepspeed $A",
    "for x in only; do deepspeed $x; done",
    "f() { deepspeed $1 \"$@\" $#; }; f a 'b c'; f",
    "f() { local A=2; B=3; deepspeed $A; }; A=1; f; deepspeed $A $B",
    'function f { g "$1" x; }\ng() { deepspeed "$@"; }\nf 1',
    "f() { A=1; return; A=2; }; f; deepspeed $A",
    "A=1; if true; then exit 0; fi; deepspeed never; deepspeed $A",
    "deepspeed a; exit; deepspeed b",
    "cat <<X\ndeepspeed no $(\nX\ndeepspeed yes",
    "cat <<-'X' | tr a b\n\tdeepspeed no '\n\tX\ndeepspeed yes",
    "cat <<A; cat <<B\ndeepspeed no\nA\ndeepspeed no\nB\ndeepspeed yes",
    "case x in (x|y) deepspeed a;; *) deepspeed b;; esac",
    '[[ a =~ ^(a|b)$ && -n "x" ]] && deepspeed a',
    "((1 < 2)) && deepspeed a",
    "time deepspeed a; ! deepspeed b",
    "deepspeed a >log 2>&1 <<< x b",
    "deepspeed a &>/dev/null & wait",
    "trap 'deepspeed no' USR1; deepspeed yes",
    # Shells inside.
    "X=$(deepspeed a 'b c'); A=(x $(deepspeed d)); : ${N:-$(deepspeed e)} $((1 + $(deepspeed f)))",
    'A=1; echo "$(A=2; deepspeed "a $A"; X=$(deepspeed $A))" >/dev/null; deepspeed $A',
    "A='x y'; X=`deepspeed a $A \"$A\"`",
    "for x in $(deepspeed a); do :; done; case $(deepspeed b) in x) ;; esac; [[ -n $(deepspeed) ]]",
    "deepspeed a > >(deepspeed b) < <(deepspeed c)",
    "A='x y'; export B=2\nbash <<X\ndeepspeed $A \\$B \"q $A\" '\\$B' \\\"x\\\" \\\\\n \\\n c\nX",
    "A=1; bash -s -- x <<'X'\ndeepspeed a \"b c\"\nexport A=2\ndeepspeed $A\nX\ndeepspeed $A",
    "bash <<-X >/dev/null\n\tdeepspeed a\n\t\tdeepspeed b\n\tX",
    "A=x; bash <<< \"deepspeed $A 'b c'\"",
    "cat > job <<X\n#!/bin/bash\ndeepspeed a \\\n  b\nX\nbash job",
    "read -r -d '' A <<X\n  a 'b\n c d'\n\nX\ndeepspeed $A \"$A\"",
    "read -d '' A <<X\na \\\n b\nX\ndeepspeed $A",
]
"""Scripts of which every word is certain."""

UNKNOWN = [
    ("deepspeed --n $N x", "$N"),
    ("A+=' --x 1'; deepspeed $A", "$A"),
    ('A+=(--x 1); deepspeed "${A[@]}" ${#A[@]}', "${A[@]}"),
    ('f() { deepspeed $2 $1 $#; }; f "$@" x', "$2"),
    ("[ -d /nowhere ] && f() { A=2; }; A=1; f; deepspeed $A", "$A"),
    ("set -- a; for x in 1 2; do deepspeed $1; shift; set -- b; done", "$1"),
    ("while [ -d /nowhere ]; do export B=1; done; B=2; bash -c 'deepspeed $B'", "$B"),
    ("deepspeed $(echo 1 2) x", "$(echo 1 2)"),
    ("A=`echo 1`; deepspeed $A x", "$A"),
    ("A=1; [ -d /nowhere ] && A=2; deepspeed $A", "$A"),
    ("A=1; for A in 1 2; do deepspeed $A; done", "$A"),
    ("A=1; while [ $A -lt 3 ]; do A=$((A+1)); done; deepspeed $A", "$A"),
    ("A=1; f() { A=2; }; [ -d /nowhere ] && f; deepspeed $A", "$A"),
    ("if [ -f /nowhere ]; then A=1; else A=2; fi; deepspeed $A", "$A"),
    ("A=1; [[ x == y && -f z ]] || A=2; deepspeed $A", "$A"),
    ("case $RANDOM in 1) A=1;; *) A=2;; esac; deepspeed $A", "$A"),
    ("A=$(echo x); if [ $A = x ]; then B=1; else B=2; fi; deepspeed $B", "$B"),
    ("B=2; [[ abc == a* ]] && B=1; deepspeed $B", "$B"),
    ("B=2; [ 1 -lt 2 -a 3 -lt 4 ] && B=1; deepspeed $B", "$B"),
    ("case x in x) A=1;& y) B=2;; esac; deepspeed ${B:-3}", "${B:-3}"),
    ("A=a/b.c; deepspeed ${A##*/} ${A%.c} ${A/b/x} ${A:1:2} ${A^^}", "${A##*/}"),
    ("A=B; B=1; deepspeed ${!A}", "${!A}"),
    ("source ./absent.sh; deepspeed ${N:-4}", "${N:-4}"),
    ('eval "$(echo N=3)"; deepspeed ${N:-4}', "${N:-4}"),
    ("IFS=,; A=1,2; deepspeed $A", "1,2"),
    ('deepspeed "$@" x', "$@"),
    ("deepspeed *.py ~/x", "*.py"),
    ("deepspeed --x={1,2}", "--x={1,2}"),
    ("A='*'; deepspeed $A", "*"),
    ("declare -i A=2*3; deepspeed $A", "$A"),
    ("declare -A M=([a]=1); deepspeed ${M[a]}", "${M[a]}"),
    ("A=1; ((A++)); deepspeed $A", "$A"),
    ("A=1; let A=A+1; deepspeed $A", "$A"),
    ("read -r A < /dev/null; deepspeed ${A:-1}", "${A:-1}"),
    ("deepspeed $RANDOM $PWD ${HOME:-x}", "$RANDOM"),
    ("deepspeed $((N + 1))", "$((N + 1))"),
    ("deepspeed $((1 / 0))", "$((1 / 0))"),
    ("A=1; bash -c 'deepspeed $A'", "$A"),
    ('A=$(echo 1); C="deepspeed $A"; A=2; eval "$C"', "$A"),
    ("A=1; bash <<'X'\ndeepspeed $A\nX", "$A"),
    ("bash <<X\ndeepspeed $(echo 1) x\nX", "$(echo 1)"),
    ("read -d '' A <<'X'\na \\\nb\nX\ndeepspeed ${A:-1}", "${A:-1}"),
    ("cat > job <<'X'\n#!/bin/sh\ndeepspeed $N x\nX\nN=1 bash job", "$N"),
]
"""Scripts with a word that is not certain: bash's own word must be what the unknown hides."""


@pytest.mark.parametrize("script", KNOWN)
def test_certain_words(script: str) -> None:
    found = commands(script)
    assert found
    assert all(word.known for words in found for word in words)


@pytest.mark.parametrize(("script", "text"), UNKNOWN)
def test_uncertain_words(script: str, text: str) -> None:
    unknown = [word.text for words in commands(script) for word in words if not word.known]
    assert unknown[:1] == [text]


@needs_bash
@pytest.mark.parametrize("script", [*KNOWN, *(script for script, _ in UNKNOWN)])
def test_words_are_those_of_bash(script: str, tmp_path: Path) -> None:
    runs = [run for run in commands_run(script.encode(), tmp_path) if "deepspeed" in run]
    found = commands(script)
    assert all(any(agrees(words, run) for words in found) for run in runs), (runs, found)
    if script in KNOWN and "never" not in script and "*) deepspeed" not in script:
        assert len(runs) == len(found), (runs, found)
