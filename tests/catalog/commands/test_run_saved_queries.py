"""`manage.py run_saved_queries`: a search quality check for scripts."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from catalog.access.actors import COMMAND_LINE
from catalog.models import Policy
from catalog.services import policies, saved_queries
from tests.harness.rows import make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db


@pytest.fixture
def policy() -> Policy:
    make_tool(server=make_server(name="slack"), name="send_message", description="Write to a channel.")
    policy = Policy.objects.get(slug="default")
    saved_queries.save_query(policy=policy, query="send", expected=["send_message"], actor=COMMAND_LINE)
    return policy


def run(*arguments: str) -> str:
    written = io.StringIO()
    call_command("run_saved_queries", *arguments, stdout=written)
    return written.getvalue()


def test_says_what_passes(policy: Policy) -> None:
    assert run().splitlines() == ["passes  send", "default: 1 of 1 pass, R@5 1.000"]


def test_ends_with_1_where_one_fails_and_writes_all_the_same(
    policy: Policy, capsys: pytest.CaptureFixture[str]
) -> None:
    policies.change_policy(policy=policy, changed={"visible": []}, actor=COMMAND_LINE)
    with pytest.raises(SystemExit, match="1"):
        call_command("run_saved_queries", "--json")
    assert json.loads(capsys.readouterr().out) == [
        {
            "policy": "default",
            "query": "send",
            "passed": False,
            "places": {"mcp__slack__send_message": None},
        }
    ]


def test_one_policy_alone_and_nothing_saved(policy: Policy) -> None:
    make_policy(slug="other")
    assert run("--policy", "other") == "no query is saved\n"
    with pytest.raises(CommandError, match="no policy named gone"):
        run("--policy", "gone")
