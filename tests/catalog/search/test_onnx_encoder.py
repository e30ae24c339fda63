"""Folders of sentence encoders are run as their own configuration says, and refused by name otherwise."""

import json
from pathlib import Path

import numpy as np
import pytest

from catalog.search import onnx_encoder
from catalog.search.errors import UnusableEncoder
from catalog.search.onnx_encoder import OnnxEncoder
from tests.harness.tiny_encoder import make_encoder

TRANSFORMER = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
POOLING = {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
DENSE = {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}


def nearness(encoder: OnnxEncoder, one: str, other: str) -> float:
    first, second = encoder.encode([one, other])
    return float(first @ second)


@pytest.mark.parametrize("output", ["last_hidden_state", "token_embeddings", "sentence_embedding", "other"])
@pytest.mark.parametrize("has_types", [True, False])
def test_words_of_one_topic_are_near(tmp_path: Path, output: str, has_types: bool) -> None:
    encoder = OnnxEncoder(make_encoder(tmp_path / "tiny", output=output, has_types=has_types))
    assert nearness(encoder, "schedule a meeting", "appointment") > 0.8
    assert nearness(encoder, "schedule a meeting", "rain") < 0.7
    query = encoder.encode_query("meeting")
    assert query is not None
    assert np.linalg.norm(query.vector) == pytest.approx(1, abs=1e-5)
    assert encoder.dimensions == len(query.vector) == 16


def test_a_text_has_the_same_vector_beside_longer_ones(tmp_path: Path) -> None:
    encoder = OnnxEncoder(make_encoder(tmp_path / "tiny"))
    texts = ["rain", "send the invoice by email " * 9, "", "file"]
    together = encoder.encode(texts)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert encoder.encode([]).shape == (0, 16)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, (0,)),
        ({"pooling_mode_lasttoken": True}, (2,)),
        ({"pooling_mode_mean_tokens": True}, ("mean",)),
        ({"pooling_mode_max_tokens": True}, ("max",)),
        ({"pooling_mode": "lasttoken"}, (2,)),
        ({"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True}, (0, "max")),
    ],
)
def test_tokens_are_pooled_as_the_folder_says(
    tmp_path: Path, config: dict[str, object], expected: tuple[object, ...]
) -> None:
    words = ["rain", "file", "email"]
    plain = OnnxEncoder(make_encoder(tmp_path / "plain", has_markers=False))
    tokens = plain.open()._session.run(
        ["last_hidden_state"],
        {
            "input_ids": np.array([[plain.open()._tokenizer.token_to_id(word) for word in words]]),
            "attention_mask": np.ones((1, 3), dtype=np.int64),
            "token_type_ids": np.zeros((1, 3), dtype=np.int64),
        },
    )[0][0]
    ways = {"mean": tokens.mean(axis=0), "max": tokens.max(axis=0)}
    wanted = np.concatenate([tokens[way] if isinstance(way, int) else ways[str(way)] for way in expected])
    encoder = OnnxEncoder(make_encoder(tmp_path / "asked", has_markers=False, pooling=config))
    found = encoder.encode([" ".join(words), "rain " * 8])[0]  # beside a longer one
    np.testing.assert_allclose(found, wanted / np.linalg.norm(wanted), atol=1e-5)


def test_prompts_of_the_folder_are_prefixes_unless_others_are_given(tmp_path: Path) -> None:
    prompts = {"prompts": {"query": "rain ", "document": "file "}}
    folder = make_encoder(tmp_path / "tiny", prompts=prompts)
    encoder, bare = OnnxEncoder(folder), OnnxEncoder(folder, query_prefix="", text_prefix="")
    query = encoder.encode_query("email")
    assert query is not None
    np.testing.assert_allclose(query.vector, bare.encode(["rain email"])[0], atol=1e-6)
    np.testing.assert_allclose(encoder.encode(["email"]), bare.encode(["file email"]), atol=1e-6)
    assert encoder.name != bare.name


def test_long_texts_are_cut_where_the_folder_says(tmp_path: Path) -> None:
    encoder = OnnxEncoder(make_encoder(tmp_path / "tiny", length={"max_seq_length": 4}))
    np.testing.assert_allclose(encoder.encode(["rain storm file"]), encoder.encode(["rain storm"]), atol=1e-6)


def test_name_tells_models_apart_and_stays_the_same(tmp_path: Path) -> None:
    names = [
        OnnxEncoder(make_encoder(tmp_path / name / "tiny", seed=len(name))).name for name in ("a", "b", "cc")
    ]
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("onnx:tiny:")


@pytest.mark.parametrize(
    ("configs", "complaint"),
    [
        ({"modules": [TRANSFORMER, POOLING, DENSE]}, "cannot run the module Dense"),
        ({"modules": {"not": "a list"}}, "modules.json cannot be read"),
        ({"pooling": {"pooling_mode_weightedmean_tokens": True}}, "cannot pool by pooling_mode_weightedmean"),
        ({"pooling": {"pooling_mode": "attention"}}, "cannot pool by attention"),
        ({"pooling": ["mean"]}, "1_Pooling/config.json cannot be read"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(
    tmp_path: Path, configs: dict[str, object], complaint: str
) -> None:
    with pytest.raises(UnusableEncoder, match=complaint):
        OnnxEncoder(make_encoder(tmp_path / "tiny", **configs))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = make_encoder(tmp_path / "tiny")
    (folder / name).unlink()
    with pytest.raises(UnusableEncoder, match=f"tiny has no {name}"):
        OnnxEncoder(folder)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_damaged_file_costs_no_search_more_than_its_meaning(tmp_path: Path, name: str) -> None:
    folder = make_encoder(tmp_path / "tiny")
    (folder / name).write_bytes(b"junk")
    encoder = OnnxEncoder(folder)
    assert encoder.encode_query("rain") is None
    assert f"tiny/{name} cannot be" in encoder.problem
    with pytest.raises(UnusableEncoder, match=name):
        encoder.encode(["rain"])


def test_tokenizer_without_a_piece_for_unknown_words_costs_no_search_more_than_its_meaning(
    tmp_path: Path,
) -> None:
    folder = make_encoder(tmp_path / "tiny")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["unk_token"] = "[NONE]"
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    encoder = OnnxEncoder(folder)
    assert encoder.encode_query("rain") is not None
    assert encoder.encode_query("something else") is None
    with pytest.raises(UnusableEncoder, match="cannot be run"):
        encoder.encode(["something else"])


def test_half_a_character_is_encoded_as_a_question_mark(tmp_path: Path) -> None:
    encoder = OnnxEncoder(make_encoder(tmp_path / "tiny"))
    odd, plain = encoder.encode_query("rain \ud800"), encoder.encode_query("rain ?")
    assert odd is not None
    assert plain is not None
    np.testing.assert_allclose(odd.vector, plain.vector)


def test_links_that_lead_nowhere_and_folders_are_no_part_of_the_model(tmp_path: Path) -> None:
    folder = make_encoder(tmp_path / "tiny")
    name = OnnxEncoder(folder).name
    (folder / "gone.json").symlink_to(tmp_path / "nowhere")
    (folder / "more.json").mkdir()
    (folder / "model.onnx.parts").mkdir()
    assert OnnxEncoder(folder).name == name


def test_file_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_encoder(tmp_path / "tiny")

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(UnusableEncoder, match="tiny cannot be read: Permission denied"):
        OnnxEncoder(folder)


def test_missing_package_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    encoder = OnnxEncoder(make_encoder(tmp_path / "tiny"))
    assert encoder.encode_query("rain") is None
    assert "extra `encoder`" in encoder.problem


def test_queries_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = OnnxEncoder(make_encoder(tmp_path / "tiny"))
    first = encoder.encode_query("rain")
    monkeypatch.setattr(onnx_encoder._Model, "run", lambda *_: pytest.fail("asked again"))
    assert encoder.encode_query("rain") is first


def test_modules_say_where_the_pooling_is(tmp_path: Path) -> None:
    elsewhere = {**POOLING, "path": "9_Pooling"}
    folder = make_encoder(tmp_path / "tiny", modules=[TRANSFORMER, elsewhere])
    (folder / "9_Pooling").mkdir()
    (folder / "9_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_max_tokens": True}))
    maximum = OnnxEncoder(make_encoder(tmp_path / "max", pooling={"pooling_mode_max_tokens": True}))
    np.testing.assert_allclose(
        OnnxEncoder(folder).encode(["rain file"]), maximum.encode(["rain file"]), atol=1e-6
    )
