"""Many ways for a stdio server to be bad: each ends in time, with its own words and no process left."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from catalog import upstream
from catalog.domain.connection import FailureCode, Limits, UpstreamFailure
from tests.catalog.upstream.conftest import AT_HOME, ListOdd, RollCall, odd_connection

# What interpreters need to start and the subreaper to clean up, on a busy machine.
SLACK_SECONDS = 8.0


@pytest.mark.parametrize(
    ("behaviour", "code", "words"),
    [
        ("exits_at_once", FailureCode.EXITED, "exit code 3 before it answered: config file is missing"),
        ("never_ends_its_pages", FailureCode.TOO_MANY_PAGES, "did not end after 100 pages"),
        ("goes_in_a_circle", FailureCode.REPEATED_CURSOR, "the same cursor twice"),
        ("describes_at_length", FailureCode.TOO_LARGE, "sent more than 16.8 MB"),
        ("never_ends_its_line", FailureCode.TOO_LARGE, "sent more than 16.8 MB"),
        ("floods_requests", FailureCode.TOO_MANY_MESSAGES, "more than 100 requests of its own"),
        ("floods_notifications", FailureCode.TOO_MANY_MESSAGES, "more than 10000 notifications of its own"),
        ("spoils_its_json", FailureCode.NOT_MCP, "not valid JSON"),
        ("speaks_another_protocol", FailureCode.WRONG_PROTOCOL, "1999-12-31"),
    ],
)
def test_a_bad_server_fails_with_its_own_words(
    list_odd: ListOdd, roll_call: RollCall, behaviour: str, code: FailureCode, words: str
) -> None:
    with pytest.raises(UpstreamFailure) as failure:
        list_odd(behaviour)
    assert failure.value.code is code
    assert words in failure.value.message
    roll_call.assert_all_dead()


@pytest.mark.parametrize(
    ("behaviour", "code", "words"),
    [
        ("hangs_on_connect", FailureCode.CONNECT_TIMEOUT, "did not answer MCP's greeting within 2 s"),
        ("hangs_on_list", FailureCode.LIST_TIMEOUT, "did not list its tools within 2 s"),
        ("talks_of_other_things", FailureCode.NOT_MCP, "no MCP message: Listening on port 8080"),
        ("clings_to_life", FailureCode.CONNECT_TIMEOUT, "did not answer MCP's greeting within 2 s"),
    ],
)
def test_a_silent_server_is_given_up_in_time(
    list_odd: ListOdd, roll_call: RollCall, behaviour: str, code: FailureCode, words: str
) -> None:
    started = time.monotonic()
    with pytest.raises(UpstreamFailure) as failure:
        list_odd(behaviour, connect_timeout_seconds=2, list_timeout_seconds=2)
    assert time.monotonic() - started < 4 + SLACK_SECONDS
    assert failure.value.code is code
    assert words in failure.value.message
    roll_call.assert_all_dead()


def test_a_server_may_ask_and_tell_a_little_before_it_answers(list_odd: ListOdd) -> None:
    assert [tool["name"] for tool in list_odd("asks_a_little_first").definitions] == ["fine"]


def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(UpstreamFailure, match="no-such-command was not found") as failure:
        upstream.list_tools(
            replace(odd_connection("is_fine"), command="no-such-command"), limits=Limits(), rules=AT_HOME
        )
    assert failure.value.code is FailureCode.COMMAND_NOT_FOUND


def test_a_file_that_cannot_run_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF nothing")
    broken.chmod(0o755)
    with pytest.raises(UpstreamFailure, match="exit code 126") as failure:
        upstream.list_tools(
            replace(odd_connection("is_fine"), command=str(broken)), limits=Limits(), rules=AT_HOME
        )
    assert "cannot run" in failure.value.stderr_tail


def test_of_two_tools_with_one_name_the_first_is_kept(list_odd: ListOdd) -> None:
    listing = list_odd("repeats_names")
    assert [tool["description"] for tool in listing.definitions] == ["A tool like any other."]
    assert listing.rejected == (
        ("fine", "another tool of this server has the same name; the first is kept", 1),
    )


def test_a_tool_with_a_bad_schema_is_kept_out_alone(list_odd: ListOdd) -> None:
    listing = list_odd("has_a_bad_schema")
    assert [tool["name"] for tool in listing.definitions] == ["fine"]
    assert [one.name for one in listing.rejected] == ["bad"]
    assert "properties/n/type: 7 is not" in listing.rejected[0].why


def test_a_tool_described_at_too_great_a_length_is_kept_out_alone(list_odd: ListOdd) -> None:
    listing = list_odd("describes_one_too_long")
    assert [tool["name"] for tool in listing.definitions] == ["fine"]
    assert listing.rejected[0].name == "wordy"


def test_of_a_flood_on_stderr_the_last_4_kb_are_kept(list_odd: ListOdd, roll_call: RollCall) -> None:
    listing = list_odd("floods_stderr")
    assert [tool["name"] for tool in listing.definitions] == ["fine"]
    assert len(listing.stderr_tail.encode()) == 4096
    roll_call.assert_all_dead()


def test_more_tools_than_allowed_are_refused(list_odd: ListOdd) -> None:
    with pytest.raises(UpstreamFailure, match="more than 2 tools") as failure:
        list_odd("has_three_pages", max_tools=2)
    assert failure.value.code is FailureCode.TOO_MANY_TOOLS
