"""`manage.py evaluate`: a table or JSON, one line or object for each set and ranker. No database."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from catalog.domain.encoder_setting import EncoderSetting
from tests.harness.embeddings_server import KEY, running_embeddings_server
from tests.harness.nodes import find_free_port
from tests.harness.tiny_encoder import make_encoder

KEYS = ["set", "ranker", "encoder", "tools", "queries", "R@1", "R@3", "R@5", "R@8", "MRR", "nDCG@10"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "fruit"
    made.mkdir()
    tools = [
        {"server": "s", "name": name, "description": f"all about {name}"} for name in ("apples", "pears")
    ]
    queries = [{"query": "tell me about pears", "gold": ["s/pears"]}]
    (made / "tools.jsonl").write_text("\n".join(map(json.dumps, tools)))
    (made / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    return made


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    call_command("evaluate", *map(str, arguments))
    return capsys.readouterr().out


def test_json_has_one_object_for_each_set_and_ranker(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    rows: list[dict[str, Any]] = json.loads(run(capsys, folder, folder, "--json"))
    assert [list(row) for row in rows] == [KEYS] * 6
    assert [row["ranker"] for row in rows] == ["bm25f", "keyword", "overlap"] * 2
    assert rows[0] | {"R@3": 1} == dict(
        zip(KEYS, ["fruit", "bm25f", "words", 2, 1, 1, 1, 1, 1, 1, 1], strict=True)
    )


def test_named_rankers_only(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    rows = json.loads(run(capsys, folder, "--json", "--ranker", "overlap", "bm25f"))
    assert [row["ranker"] for row in rows] == ["overlap", "bm25f"]


def test_a_table_is_for_reading(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    header, *lines = run(capsys, folder).splitlines()
    assert header.split() == KEYS
    assert len(lines) == 3


def test_a_missing_folder_is_named(folder: Path) -> None:
    with pytest.raises(CommandError, match=r"nowhere/tools\.jsonl: No such file"):
        call_command("evaluate", str(folder / "nowhere"))


def test_a_bad_line_is_named(folder: Path) -> None:
    (folder / "queries.jsonl").write_text("nonsense")
    with pytest.raises(CommandError, match=r"queries\.jsonl:1: not JSON"):
        call_command("evaluate", str(folder))


def test_an_unknown_ranker_is_refused(folder: Path) -> None:
    with pytest.raises(CommandError, match="best"):
        call_command("evaluate", str(folder), "--ranker", "best")


def test_encoders_are_compared(capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path) -> None:
    tiny = f"onnx:{make_encoder(tmp_path / 'tiny')}"
    arguments = ("--ranker", "bm25f", "--encoder", "none", tiny, folder, "--json")
    rows = json.loads(run(capsys, *arguments))
    assert [row["encoder"] for row in rows] == ["none", tiny]


def test_an_encoder_that_cannot_be_opened_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"empty has no model\.onnx"):
        call_command("evaluate", str(folder), "--encoder", f"onnx:{tmp_path / 'empty'}")


def test_an_endpoint_without_a_model_s_name_is_refused(folder: Path) -> None:
    with pytest.raises(CommandError, match="TOOLSEARCH_ENCODER_MODEL is missing"):
        call_command("evaluate", str(folder), "--encoder", "http://127.0.0.1:1/v1")


def test_an_address_that_is_none_is_named(folder: Path, settings: Settings) -> None:
    settings.ENCODER = EncoderSetting(model="tiny-1")
    with pytest.raises(CommandError, match=r"'http://\[::1/v1' is not an address"):
        call_command("evaluate", str(folder), "--encoder", "http://[::1/v1")


def test_an_endpoint_s_address_is_completed_as_in_the_environment(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path, settings: Settings
) -> None:
    with running_embeddings_server(make_encoder(tmp_path / "tiny")) as server:
        server.encoder.open()
        settings.ENCODER = EncoderSetting(model="tiny-1", key=KEY)
        base = server.url.removesuffix("/embeddings")
        rows = json.loads(run(capsys, folder, "--ranker", "bm25f", "--json", "--encoder", base))
    assert [row["encoder"] for row in rows] == [base]


def test_an_endpoint_that_does_not_answer_is_no_result(folder: Path, settings: Settings) -> None:
    settings.ENCODER = EncoderSetting(model="tiny-1")
    with pytest.raises(CommandError, match=r"127\.0\.0\.1: it cannot be reached"):
        call_command("evaluate", str(folder), "--encoder", f"http://127.0.0.1:{find_free_port()}/embeddings")
