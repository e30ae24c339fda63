"""What counts as a word, for documents and queries alike."""

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
    (run,) = words.runs(text)
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
    ("left", "right"), [("issues", "issue"), ("deleting", "delete"), ("repositories", "repository")]
)
def test_endings_do_not_matter(left: str, right: str) -> None:
    assert document_terms(left) == document_terms(right)


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
    ],
)
def test_text_without_spaces_is_found_by_its_parts(text: str, query: str) -> None:
    (run,) = words.runs(query)
    assert {term for part in run.parts for term in part.terms} <= set(document_terms(text))


def test_text_without_spaces_ends_at_latin_letters() -> None:
    assert "api" in document_terms("天気API")


def test_marks_stay_with_their_letters() -> None:
    assert document_terms("हिन्दी") == ["हिन्दी"]


def test_stop_words_are_known_by_their_run() -> None:
    assert [run.typed for run in words.runs("Please send it to the user's Id") if not run.is_stop] == [
        "send",
        "user",
        "Id",
    ]


@pytest.mark.parametrize("text", ["", "!!!", "\x00", "\ud800", "🙂🙂", "___"])
def test_text_without_words_has_none(text: str) -> None:
    assert document_terms(text) == []


def test_a_very_long_word_is_cut() -> None:
    assert [len(term) for term in document_terms("x" * 5000)] == [64]


def test_plain_words_keep_their_endings() -> None:
    assert words.plain_words("List GitHub issues of id 42") == {"list", "git", "hub", "issues"}
