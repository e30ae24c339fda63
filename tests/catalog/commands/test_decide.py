import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from tests.catalog.domain.making import make_definition, make_document

DOCUMENT = make_document(
    {"github": [make_definition("create_issue", chars=100)], "agent": [make_definition("bash")]},
    servers={"agent": {"kind": "builtin"}},
)


def run(path: Path, *options: str) -> str:
    output = io.StringIO()
    call_command("decide", str(path), *options, stdout=output)
    return output.getvalue()


def refuse(path: Path) -> list[str]:
    errors = io.StringIO()
    with pytest.raises(SystemExit) as caught:
        call_command("decide", str(path), stderr=errors)
    assert caught.value.code == 2
    return errors.getvalue().splitlines()


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "document.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return path


def test_json_is_the_contracts_answer(tmp_path: Path) -> None:
    answer = json.loads(run(write(tmp_path, json.dumps(DOCUMENT)), "--json"))
    assert answer == {
        "active": True,
        "over": False,
        "measure": {"unit": "chars", "value": 100, "limit": 10_000},
        "decisions": [
            {"name": "bash", "server": "agent", "decision": "load", "reason": "builtin"},
            {
                "name": "mcp__github__create_issue",
                "server": "github",
                "decision": "defer",
                "reason": "mode_always",
            },
        ],
    }


def test_the_table_shows_each_decision_and_the_reading(tmp_path: Path) -> None:
    lines = run(write(tmp_path, json.dumps(DOCUMENT))).splitlines()
    assert lines[0] == "Tool search is active: 1 of 2 tools deferred."
    assert lines[1] == "chars: 100, limit 10,000: not over."
    assert [line.split() for line in lines[2:]] == [
        ["DECISION", "REASON", "NAME", "SERVER"],
        ["load", "builtin", "bash", "agent"],
        ["defer", "mode_always", "mcp__github__create_issue", "github"],
    ]


def test_a_dash_reads_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(DOCUMENT).encode())))
    assert json.loads(run(Path("-"), "--json"))["active"] is True


def test_each_mistake_is_one_line_with_its_place(tmp_path: Path) -> None:
    document: dict[str, Any] = {"policy": {"mode": 3}, "servers": {"a\nb": {"tools": [{}]}}}
    assert refuse(write(tmp_path, json.dumps(document))) == [
        "policy.mode: must be one of always, auto, off",
        'servers["a\\nb"].tools[0].name: is missing',
    ]


def test_bad_json_names_line_and_column(tmp_path: Path) -> None:
    (line,) = refuse(write(tmp_path, '{\n "policy": }'))
    assert line.startswith("line 2 column 12: invalid JSON")


@pytest.mark.parametrize("content", [b"\xff\xfe", "[" * 100_000, "[" + "9" * 10_000 + "]", "", "null"])
def test_a_hostile_file_is_one_line(tmp_path: Path, content: str | bytes) -> None:
    assert len(refuse(write(tmp_path, content))) == 1


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    (line,) = refuse(tmp_path / "nowhere.json")
    assert "nowhere.json: No such file" in line
    assert len(refuse(tmp_path)) == 1


def test_odd_names_cannot_break_the_table(tmp_path: Path) -> None:
    content = '{"servers": {"a\\ud800\\nb": {"tools": [{"name": "x"}]}}}'
    path = write(tmp_path, content)
    assert run(path).encode().endswith(b"a\\ud800\\nb\n")
    assert json.loads(run(path, "--json"))["decisions"][0]["server"] == "a\ud800\nb"
