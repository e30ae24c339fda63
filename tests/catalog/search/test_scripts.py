"""What an encoder's vocabulary knows of a query."""

from collections.abc import Callable
from typing import Any

import pytest

from catalog.search import scripts

ENGLISH = [
    *(f"word{letter}" for letter in "abcdefghij"),
    "##ing",
    "а",
    "##б",
    "的",
    "##文",
    "[UNK]",
    "42",
    ",",
]


def chinese_characters(count: int) -> list[str]:
    return [chr(0x4E00 + at) for at in range(count)]


def knows(*known: str) -> Callable[[str], bool]:
    return set(known).__contains__


class TestKnownScripts:
    def test_single_letters_of_a_script_are_no_knowledge_of_it(self) -> None:
        assert scripts.find_known_scripts(ENGLISH) == {"LATIN"}

    def test_a_few_longer_pieces_in_a_large_vocabulary_are_none_either(self) -> None:
        latin = [f"piece{first}{second}" for first in map(chr, range(97, 123)) for second in "abcdefgh"]
        assert scripts.find_known_scripts([*latin, "по", "ов", "ск"]) == {"LATIN"}

    def test_many_longer_pieces_are(self) -> None:
        russian = [f"{first}{second}в" for first in "абвгдежзик" for second in "лмнопрстуф"]
        assert scripts.find_known_scripts([*ENGLISH, *russian]) == {"LATIN", "CYRILLIC"}

    @pytest.mark.parametrize(("count", "is_known"), [(700, False), (7_000, True)])
    def test_chinese_characters_count_where_there_are_thousands(self, count: int, is_known: bool) -> None:
        found = scripts.find_known_scripts([*ENGLISH, *chinese_characters(count)])
        assert ("CJK" in found) == is_known

    def test_bytes_written_as_letters_are_read(self) -> None:
        assert scripts.write_as_text(["Ġthe", "Ð¿Ð¾", "æĸĩä»¶"]) == [" the", "по", "文件"]

    def test_an_empty_vocabulary_knows_nothing(self) -> None:
        assert scripts.find_known_scripts([]) == frozenset()


class TestVocabulary:
    """Of tokenizers that are made here."""

    @pytest.fixture
    def words_only(self) -> Any:
        tokenizers = pytest.importorskip("tokenizers")
        numbers = {word: number for number, word in enumerate(("[UNK]", "send", "mail", "ма", "文"))}
        return tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="[UNK]"))

    def test_words_of_it_are_known_and_others_are_not(self, words_only: Any) -> None:
        vocabulary = scripts.Vocabulary(words_only)
        assert vocabulary.knows("send")
        assert not vocabulary.knows("fetch")
        assert not vocabulary.knows("文")

    def test_small_pieces_are_no_knowledge(self) -> None:
        tokenizers = pytest.importorskip("tokenizers")
        pieces = ["[UNK]", "send", "##er", *"abcdefgh", *(f"##{letter}" for letter in "abcdefgh")]
        numbers = {piece: number for number, piece in enumerate(pieces)}
        model = tokenizers.models.WordPiece(numbers, unk_token="[UNK]")
        vocabulary = scripts.Vocabulary(tokenizers.Tokenizer(model))
        assert vocabulary.knows("sender")
        assert not vocabulary.knows("gabfedch")


class TestShareKnown:
    def test_significant_words_count_each(self) -> None:
        assert scripts.measure_known("send the mail to Аня", knows("send", "mail")) == pytest.approx(2 / 3)

    def test_a_text_without_spaces_counts_by_its_pairs(self) -> None:
        assert scripts.measure_known("查找文件 now GitHub", knows("GitHub")) == pytest.approx(1 / 4)

    def test_digits_do_not_count(self) -> None:
        assert scripts.measure_known("area of 5 and 10", knows("area")) == 1

    def test_nothing_to_know_is_known(self) -> None:
        assert scripts.measure_known("42 !!!", knows()) == 1

    @pytest.mark.parametrize("text", ["!!!", "🙂", "\ud800"])
    def test_signs_alone_mean_nothing(self, text: str) -> None:
        assert scripts.measure_known(text, knows()) == 0


def test_a_word_in_small_pieces_is_not_known() -> None:
    assert scripts.is_whole("kubernetes", 3)
    assert scripts.is_whole("therapeutics", 5)
    assert not scripts.is_whole("zjzcxe", 5)
    assert scripts.is_whole("查找文件", 4)


@pytest.mark.parametrize(
    ("word", "is_written"), [("mail2", True), ("café", True), ("文件", False), ("почта", False), ("42", True)]
)
def test_scripts_of_a_word(word: str, is_written: bool) -> None:
    assert scripts.is_written_in(word, frozenset({"LATIN"})) == is_written
