"""Static word vectors from the optional package's files."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from catalog.search import wordvectors
from catalog.search.meaning import Encoder


@pytest.fixture
def encoder() -> Encoder:
    found = wordvectors.find_encoder()
    if found is None:
        pytest.skip("wordllama is not installed")
    return found


def test_near_meanings_are_near(encoder: Encoder) -> None:
    dog, puppy, invoice = encoder.encode(["feed the dog", "give the puppy food", "pay an invoice"])
    assert dog @ puppy > dog @ invoice + 0.1


def test_vectors_have_length_one(encoder: Encoder) -> None:
    vectors = encoder.encode(["create an issue", "x"])
    assert vectors.shape == (2, encoder.dimensions)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)


def test_case_and_signs_do_not_matter(encoder: Encoder) -> None:
    plain, loud = encoder.encode(["create issue", "Create, ISSUE!"])
    assert np.allclose(plain, loud)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("create an issue", 1),
        ("搜索文件", 0),
        ("найти файл", 0),
        ("create zqxjkvbw", 0.5),
        ("create 搜索", 0.5),
        ("", 0),
    ],
)
def test_only_latin_words_of_few_pieces_are_known(encoder: Encoder, text: str, known: float) -> None:
    meaning = encoder.encode_query(text)
    assert meaning is not None
    assert meaning.known == known


@pytest.mark.parametrize("text", ["", "!!!", "\ud800"])
def test_a_text_without_words_is_zero(encoder: Encoder, text: str) -> None:
    assert not encoder.encode([text]).any()


def test_an_absent_package_is_no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordvectors, "find_spec", lambda _: None)
    assert wordvectors.find_encoder.__wrapped__() is None


def test_weights_of_another_type_are_refused(tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]}}).encode()
    (tmp_path / "w").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    with pytest.raises(ValueError, match="16-bit"):
        wordvectors._map_tensor(tmp_path / "w", "w")
