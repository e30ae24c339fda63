"""Finds confusable letters, by which one name can pass for another."""

import re
import unicodedata

_CYRILLIC = dict(zip("асеіјѕорухԁԛԝһАВЕКМНОРСТХІЈЅУ", "aceijsopyxdqwhABEKMHOPCTXIJSY", strict=True))
_GREEK = dict(zip("αινοργυκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aivopyukABEZHIKMNOPTYX", strict=True))
_LATIN_TWIN = str.maketrans(_CYRILLIC | _GREEK)
_LATIN_LETTER = re.compile(r"[A-Za-z]")
# In running text only a word of two alphabets is odd: units such as the Greek micro sign are not.
MIXED_WORD = re.compile("(?P<found>[A-Za-z][а-яА-ЯіјѕІЈЅ]|[а-яА-ЯіјѕІЈЅ][A-Za-z])")

# Letters and signs in another shape: full width, mathematical, in circles; and blanks of other widths.
_OTHER_SHAPES = (*range(0x2000, 0x200B), *range(0x2100, 0x2150), *range(0x24B6, 0x24EA), 0x3000, 0xA0)
_OTHER_SHAPES += (*range(0xFF01, 0xFF5F), *range(0x1D400, 0x1D800))
_PLAIN = {
    code: plain
    for code in _OTHER_SHAPES
    if len(plain := unicodedata.normalize("NFKC", chr(code))) == 1 and plain.isascii()
}


def write_plainly(text: str) -> str:
    """The text with confusable letters replaced by ASCII, at the same positions."""
    return text if text.isascii() else text.translate(_PLAIN)


def name_odd_letter(text: str) -> str:
    """The text, and the Unicode name of its first letter beyond ASCII, which looks ordinary."""
    odd = next((letter for letter in text if not letter.isascii()), "")
    return f"{text} has a {unicodedata.name(odd, 'nameless character').lower()}" if odd else text


def is_confusable(name: str) -> bool:
    """Whether a name mixes confusable letters with Latin ones, or consists of nothing else.

    A name entirely in another alphabet is an ordinary name.
    """
    if name.isascii():
        return False
    plain = unicodedata.normalize("NFKC", name).translate(_LATIN_TWIN)
    return plain != name and (plain.isascii() or bool(_LATIN_LETTER.search(name)))
