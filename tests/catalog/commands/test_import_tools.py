"""`manage.py import_tools` takes the three forms of a file, and all of it or nothing."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from catalog.models import Server, Tool
from catalog.search import generations
from tests.harness.rows import make_server

pytestmark = pytest.mark.django_db

TOOLS = [
    {"name": "a", "description": "First.", "inputSchema": {"type": "object"}},
    {"name": "b", "inputSchema": {"type": "object"}},
]


def load(server: str, content: str, tmp_path: Path) -> tuple[str, str]:
    path = tmp_path / "tools.json"
    path.write_text(content)
    out, err = StringIO(), StringIO()
    call_command("import_tools", server, str(path), stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(TOOLS),
        json.dumps({"tools": TOOLS}),
        json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": TOOLS}}),
        "\n".join(json.dumps(tool) for tool in TOOLS),
    ],
    ids=["array", "result", "answer", "lines"],
)
def test_every_form_is_in_force_when_it_returns(content: str, tmp_path: Path, index_folder: Path) -> None:
    out, _ = load("files", content, tmp_path)
    assert out == "files: 2 added, 0 changed, 0 gone, 0 unchanged, 0 rejected\n"
    assert Server.objects.get().transport == "snapshot"
    assert sorted(generations.open_current(index_folder)[1].names) == ["a", "b"]


def test_missing_schema_counts_as_an_empty_one(tmp_path: Path) -> None:
    load(
        "files",
        json.dumps([{"name": "a"}, {"name": "b", "inputSchema": {}}, TOOLS[0] | {"name": "c"}]),
        tmp_path,
    )
    chars = dict(Tool.objects.values_list("name", "chars"))
    assert (chars["a"], chars["b"]) == (len("a{}"), len("b{}"))
    assert chars["c"] == len('cFirst.{"type":"object"}')


def test_empty_list_takes_the_tools_away(tmp_path: Path) -> None:
    load("files", json.dumps(TOOLS), tmp_path)
    out, _ = load("files", "[]", tmp_path)
    assert out == "files: 0 added, 0 changed, 2 gone, 0 unchanged, 0 rejected\n"


def test_lines_may_hold_many_servers(tmp_path: Path) -> None:
    lines = [json.dumps({"server": server, **tool}) for server in ("one", "two") for tool in TOOLS]
    load("-", "\n".join(lines), tmp_path)
    assert list(Tool.objects.values_list("qualified_name", flat=True)) == [
        "mcp__one__a",
        "mcp__one__b",
        "mcp__two__a",
        "mcp__two__b",
    ]


def test_second_time_changes_nothing(tmp_path: Path) -> None:
    load("files", json.dumps(TOOLS), tmp_path)
    out, _ = load("files", json.dumps(TOOLS), tmp_path)
    assert out == "files: 0 added, 0 changed, 0 gone, 2 unchanged, 0 rejected\n"


def test_bad_definition_is_kept_out_alone_and_reported(tmp_path: Path) -> None:
    out, err = load("files", json.dumps([*TOOLS, {"name": "", "inputSchema": {}}, {"name": "a"}]), tmp_path)
    assert "2 added" in out
    assert "2 rejected" in out
    assert err.count("\n") == 2


@pytest.mark.parametrize(
    ("server", "content", "message"),
    [
        ("files", "{nonsense", "invalid JSON"),
        ("files", "17", "must be an array"),
        ("files", "[1]", r"tools\[0\]: must be an object"),
        ("-", json.dumps(TOOLS), "names no server"),
        ("files", '{"name": "a"}\n{"name": ', "line 2"),
        ("x" * 101, "[]", "1 to 100 characters"),
        ("-", '[{"server": "a\\ud800", "name": "x"}]', "1 to 100 characters"),
    ],
)
def test_bad_file_changes_nothing(server: str, content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=message):
        load(server, content, tmp_path)
    assert not Server.objects.exists()


def test_server_we_connect_to_is_not_overwritten(tmp_path: Path) -> None:
    make_server(name="live", transport="stdio", command="x")
    with pytest.raises(CommandError, match="live is a server we connect to"):
        load("live", json.dumps(TOOLS), tmp_path)


def test_every_name_that_is_taken_is_told_at_once(tmp_path: Path) -> None:
    for name in ("live", "other"):
        make_server(name=name, transport="stdio", command="x")
    lines = [{"server": name, "name": "t"} for name in ("free", "other", "live")]
    with pytest.raises(
        CommandError, match="2 of these are servers we connect to, not snapshots: live, other"
    ):
        load("-", "\n".join(map(json.dumps, lines)), tmp_path)
    assert Server.objects.count() == 2


def test_missing_file_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        call_command("import_tools", "files", str(tmp_path / "none.json"))
