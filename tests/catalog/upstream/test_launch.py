"""Commands that may run on our machine, and their environment."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from catalog import upstream
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, FailureCode, Limits, Rules, StdioRules, UpstreamFailure
from catalog.upstream.launch import prepare_launch
from tests.catalog.upstream.conftest import odd_connection

LISTED = frozenset({sys.executable})


def refuse(connection: Connection, rules: StdioRules) -> UpstreamFailure:
    with pytest.raises(UpstreamFailure) as failure:
        upstream.list_tools(connection, limits=Limits(), rules=Rules(stdio=rules))
    assert failure.value.code is FailureCode.STDIO_NOT_ALLOWED
    return failure.value


def test_commands_can_be_turned_off() -> None:
    failure = refuse(odd_connection("is_fine"), StdioRules(enabled=False))
    assert failure.message == "Servers that run a command are turned off here"


def test_a_command_off_the_list_does_not_run() -> None:
    failure = refuse(odd_connection("is_fine"), StdioRules(allowed_commands=frozenset({"npx"})))
    assert "is not on the list of allowed commands" in failure.message


def test_a_command_on_the_list_runs() -> None:
    rules = Rules(stdio=StdioRules(allowed_commands=LISTED))
    assert upstream.list_tools(odd_connection("is_fine"), limits=Limits(), rules=rules).definitions


def test_the_list_says_which_program_and_not_what_it_does() -> None:
    """As the pages on operations and security say: what a listed launcher is told to run is not judged."""
    rules = StdioRules(allowed_commands=frozenset({"sh"}))
    connection = Connection(Transport.STDIO, command="sh", args=("-c", "id"), env={"npm_config_x": "1"})
    assert prepare_launch(connection, rules, os.environ).args == ("-c", "id")


def test_a_command_runs_in_its_folder(tmp_path: Path) -> None:
    program = tmp_path / "serve"
    program.write_text("#!/bin/sh\npwd >&2\nexit 3\n")
    program.chmod(0o755)
    connection = Connection(Transport.STDIO, command="./serve", cwd=str(tmp_path))
    with pytest.raises(UpstreamFailure) as failure:
        upstream.list_tools(connection, limits=Limits(), rules=Rules())
    assert failure.value.stderr_tail.strip() == str(tmp_path)
    with pytest.raises(UpstreamFailure) as missing:
        upstream.list_tools(replace(connection, cwd=f"{tmp_path}/gone"), limits=Limits(), rules=Rules())
    assert missing.value.code is FailureCode.FOLDER_NOT_FOUND


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "NODE_OPTIONS", "PATH", "BASH_ENV"]
)
def test_where_commands_are_limited_no_variable_may_change_what_they_run(name: str) -> None:
    connection = odd_connection("is_fine", env={name: "/tmp/evil"})
    failure = refuse(connection, StdioRules(allowed_commands=LISTED))
    assert failure.message == f"The variable {name} changes which code a command runs: remove it"


def test_a_server_knows_path_home_and_what_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "canary")
    monkeypatch.setenv("HOME", "/home/of-the-worker")
    listing = upstream.list_tools(
        odd_connection("shows_its_environment", env={"GIVEN": "yes"}), limits=Limits(), rules=Rules()
    )
    environment = json.loads(listing.definitions[0]["description"])
    # The C library's locale is set by the interpreter of the fixture itself.
    assert environment.keys() - {"LC_CTYPE"} == {"PATH", "HOME", "GIVEN"}
    assert environment["HOME"] == "/home/of-the-worker"


def test_arguments_reach_the_server_as_they_are() -> None:
    args = ("; touch /tmp/x", "$(id)", "`id`", "a b", "*", "")
    listing = upstream.list_tools(
        odd_connection("shows_its_environment", *args), limits=Limits(), rules=Rules()
    )
    assert json.loads(listing.definitions[0]["title"]) == list(args)


def test_nul_characters_are_refused() -> None:
    refuse(replace(odd_connection("is_fine"), args=("a\0b",)), StdioRules())
