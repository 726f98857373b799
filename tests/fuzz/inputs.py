"""Inputs that are nearly right: fixtures, cut and spliced, sprinkled with hostile words."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

WORDS = (
    b"\x00", b"\x1b[31m", b"\x1b]0;x\x07", b"\r", b"\n", b"\r\n", b"\t", b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xae", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"%0A::error::x",
    b"::set-output name=a::b", b"</script><b>", b"&amp;", b"$(touch planted)", b"`touch planted`",
    b"1e400", b"-1e400", b"9" * 20, b"9" * 400, b"9" * 5000, b"0x", b"1_0", b".5e", b"NaN",
    b"-Infinity", b"1e-400", b"[" * 600, b"{" * 600, b"(" * 300, b'{"a":' * 200, b"'" * 3, b'"',
    b"\\u0000", b"\\ud800", b"\\x", b"\\", b"!!python/object/apply:os.system [x]", b"!include x",
    b"&a [*a]", b"*a", b"<<: ", b"/dev/zero", b"/", b"~", b"://", b"=",
    b"==", b"--", b"-", b":", b",", b";", b"#", b"//", b"/*", b"*/", b"auto", b"null", b"true",
    b"${X:-$Y}", b"$((1<<70))", b"<<EOF\n", b"dsguard: ignore[all]", b"\xd9\xa3",
)  # fmt: skip
"""Words that have broken readers before, somewhere."""


def inputs(seeds: Sequence[bytes], words: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Bytes near the seeds; ``words`` are those of the format."""
    piece = st.one_of(
        st.sampled_from([*words, *WORDS]),
        st.binary(max_size=8),
        st.text(max_size=6).map(lambda text: text.encode("utf-8", "surrogatepass")),
    )
    change = st.tuples(st.integers(0, 4000), st.sampled_from((0, 0, 1, 3, 20, 400)), piece)
    seed = st.one_of(st.sampled_from([*seeds, b""]), st.lists(piece, max_size=8).map(b"".join))
    return st.builds(_changed, seed, st.lists(change, max_size=6), st.sampled_from(seeds))


def _changed(seed: bytes, changes: list[tuple[int, int, bytes]], other: bytes) -> bytes:
    """The seed with pieces put in place of others; a piece may be the tail of another seed."""
    for at, cut, piece in changes:
        at %= len(seed) + 1
        new = piece if cut != 400 else piece + other[at % (len(other) + 1) :][:400]
        seed = seed[:at] + new + seed[at + cut :]
    return seed
