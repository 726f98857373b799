import pytest

from dsguard.render.characters import sentence, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x9b\x7f", "\\x9b\\x7f"),
        ("\u202e\u2028\ufeff", "\\u202e\\u2028\\ufeff"),
        ("\ud800", "\\ud800"),
        ("\U000e0001", "\\U000e0001"),
        ("a\xa0b", "a\\xa0b"),
        ("模型 é", "模型 é"),
    ],
)
def test_what_has_no_shape_becomes_an_escape(text: str, shown: str) -> None:
    assert visible(text, unicode=True) == shown


def test_without_unicode_everything_is_ascii() -> None:
    assert visible("é模😀", unicode=False) == "\\xe9\\u6a21\\U0001f600"


def test_own_signs_are_spelled_out_in_sentences_only() -> None:
    assert sentence("8 × 4 → 32 …", unicode=False) == "8 x 4 -> 32 ..."
    assert sentence("8 × 4", unicode=True) == "8 × 4"
    assert visible("×", unicode=False) == "\\xd7"
