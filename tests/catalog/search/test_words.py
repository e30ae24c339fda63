"""Splitting text into words, the same way for documents and queries."""

import tracemalloc

import pytest

from catalog.search import words
from catalog.search.words import document_terms


@pytest.mark.parametrize(
    "text", ["create_issue", "create-issue", "create.issue", "create issue", "CREATE_ISSUE"]
)
def test_signs_separate_words(text: str) -> None:
    assert document_terms(text) == document_terms("create issue")


def test_case_changes_separate_words_and_the_joined_form_stays() -> None:
    assert document_terms("createIssue") == [*document_terms("create issue"), *document_terms("createissue")]


def test_a_brand_meets_its_lower_case_spelling() -> None:
    assert set(document_terms("github")) < set(document_terms("GitHub"))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("HTTPServer", ["HTTP", "Server"]),
        ("getURLs", ["get", "URLs"]),
        ("base64Encode", ["base", "64", "Encode"]),
        ("МоскваГород", ["Москва", "Город"]),
    ],
)
def test_runs_split_at_case_and_digits(text: str, parts: list[str]) -> None:
    (run,) = words.split_words(text)
    assert [part.typed for part in run.parts] == parts


@pytest.mark.parametrize("text", ["s3", "k8s", "v2"])
def test_splits_into_single_characters_are_not_made(text: str) -> None:
    assert document_terms(text) == [text]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Café", "cafe"),
        ("ｆｕｌｌ", "full"),
        ("ﬁle", "file"),
        ("STRASSE", "straße"),
        ("naïve", "NAIVE"),
        ("Ёлка", "елка"),
    ],
)
def test_width_case_and_accents_do_not_matter(left: str, right: str) -> None:
    assert document_terms(left) == document_terms(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("alıcı", "ALICI"),
        ("đã", "da"),
        ("Łódź", "lodz"),
        ("Øst", "ost"),
        ("œuvre", "oeuvre"),
        ("کتاب", "كتاب"),
        ("ایمیل", "ايميل"),
        ("शक्\u200dति", "शक्ति"),
        ("Post\u00adfach", "Postfach"),
    ],
)
def test_letters_that_keyboards_lack_and_signs_that_nobody_sees_do_not_matter(left: str, right: str) -> None:
    assert words.document_terms(left) == words.document_terms(right)


def test_word_with_an_unseen_sign_is_located_whole() -> None:
    found = [(place.start, place.end) for place in words.locate("das Post\u00adfach hier")]
    assert found == [(0, 3), (4, 13), (14, 18)]


@pytest.mark.parametrize(
    ("left", "right"), [("issues", "issue"), ("deleting", "delete"), ("repositories", "repository")]
)
def test_endings_do_not_matter(left: str, right: str) -> None:
    assert document_terms(left) == document_terms(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("файлы", "файла"),
        ("новый", "новые"),
        ("الملفات", "للملف"),
        ("البريد", "بريد"),
        ("بريدا", "البريد"),
        ("फ़ाइलें", "फाइल"),
        ("αρχείο", "αρχεία"),
        ("מִלָּה", "מלה"),
        ("إنشاء", "انشاء"),
        ("كـتاب", "كتاب"),
    ],
)
def test_endings_and_what_may_be_left_out_do_not_matter_in_other_scripts(left: str, right: str) -> None:
    assert document_terms(left) == document_terms(right)


def test_cyrillic_letters_stay_apart() -> None:
    assert words.fold_text("Й") == "й"
    assert words.fold_text("Ё") == "е"


@pytest.mark.parametrize("query", ["oeffnung", "offnung", "Öffnung", "ÖFFNUNG"])
def test_umlauts_are_found_in_each_spelling(query: str) -> None:
    assert set(document_terms(query)) & set(document_terms("Öffnung"))


def test_words_are_whole() -> None:
    assert not set(document_terms("me")) & set(document_terms("comment"))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("使用必应搜索", "搜索"),
        ("データベース検索", "検索"),
        ("데이터베이스", "데이터"),
        ("画图", "画"),
        ("검색", "검"),
        ("ค้นหาไฟล์", "ไฟล์"),
        ("使用GitHub创建", "github"),
    ],
)
def test_text_without_spaces_is_found_by_its_parts(text: str, query: str) -> None:
    (run,) = words.split_words(query)
    assert {term for part in run.parts for term in part.terms} <= set(document_terms(text))


def test_marks_stay_with_their_characters_in_pairs() -> None:
    (word,) = words.split_words("ไฟล์")
    assert word.parts[0].terms == ("ไฟ", "ฟล์")
    assert word.parts[0].characters == ("ไ", "ฟ", "ล์")


def test_text_without_spaces_ends_at_latin_letters() -> None:
    assert "api" in document_terms("天気API")


def test_marks_stay_with_their_letters() -> None:
    (word,) = words.split_words("हिन्दी")
    assert [part.typed for part in word.parts] == ["हिन्दी"]
    assert len(document_terms("हिन्दी")) == 1


def test_stop_words_are_known_by_their_run() -> None:
    assert [run.typed for run in words.split_words("Please send it to the user's Id") if not run.is_stop] == [
        "send",
        "user",
        "Id",
    ]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ('post a message "see you at noon" to the team', "post a message to the team"),
        ("rename the file 'my old notes' now", "rename the file now"),
        ("say «добрый день» and “good day” to friends", "say and to friends"),
        ("don't cut what isn't quoted", "don't cut what isn't quoted"),
        ('use "create issue"', 'use "create issue"'),
        ('"create issue"', '"create issue"'),
        ("", ""),
    ],
)
def test_what_is_quoted_is_cut_where_enough_is_left(text: str, rest: str) -> None:
    assert words.cut_quoted(text).split() == rest.split()


@pytest.mark.parametrize("text", ["", "!!!", "\x00", "\ud800", "🙂🙂", "___"])
def test_text_without_words_has_none(text: str) -> None:
    assert document_terms(text) == []


def test_a_very_long_word_is_cut() -> None:
    assert [len(term) for term in document_terms("x" * 5000)] == [64]


def test_plain_words_keep_their_endings() -> None:
    assert words.plain_words("List GitHub issues of id 42") == {"list", "git", "hub", "issues"}


class TestWhatAProcessRemembers:
    """In bytes: entries are few enough, and none is large."""

    @pytest.fixture(autouse=True)
    def forget(self) -> None:
        for remembered in (words._remembered_runs, words._remembered_run, words._remembered_terms):
            remembered.cache_clear()

    @pytest.mark.parametrize("run", ["搜" * 20_000, "x" * 65, "aB" * 10_000, "а" * 5_000, "a1" * 17])
    def test_long_words_are_not_kept(self, run: str) -> None:
        text = f"{run} {'of many words ' * 50}"
        for number in range(3):
            assert words.document_terms(f"{text} {run}{number}")
            assert words.split_words(f"{text} {number}")
        assert words._remembered_runs.cache_info().currsize == 0
        kept = {"of", "many", "words", "0", "1", "2"}
        assert words._remembered_terms.cache_info().currsize <= len(kept)
        assert words._remembered_run.cache_info().currsize <= len(kept)

    @pytest.mark.parametrize("script", ["chinese", "two letters", "digits"])
    def test_whole_memory_of_words_is_bounded_in_bytes(self, script: str) -> None:
        def make(number: int) -> str:
            match script:
                case "chinese":
                    return "".join(chr(0x4E00 + (number * 37 + at * 911) % 20_000) for at in range(12))
                case "two letters":
                    return "".join(
                        chr(65 + (number >> at) % 2 + 2 * (at % 9)) + chr(97 + at) for at in range(16)
                    )
                case _:
                    return "".join(f"{'ab'[number >> at & 1]}{'cd'[number >> at & 1]}7" for at in range(10))

        made = {make(number) for number in range(1_000)}
        assert len(made) == 1_000
        tracemalloc.start()
        for text in made:
            words.analyze_word(text)
        run_bytes = tracemalloc.get_traced_memory()[0] / len(made)
        for text in made:
            words.document_terms(text)
        term_bytes = tracemalloc.get_traced_memory()[0] / len(made) - run_bytes
        tracemalloc.stop()
        runs, terms = words._remembered_run.cache_info(), words._remembered_terms.cache_info()
        assert (runs.currsize, terms.currsize) == (len(made), len(made))
        assert run_bytes * (runs.maxsize or 0) + term_bytes * (terms.maxsize or 0) < 110_000_000
