"""Why a key can or cannot call a tool: each reason, and that the answer is the gateway's own."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings

from catalog import process_memory
from catalog.domain.choices import Approval, Exposure, Kind, Mode, Quarantine, Transport
from catalog.models import ApiKey, Policy, Server, Tool
from catalog.selectors.facts import read_policy
from catalog.services import call_targets, decisions
from sessions.offers.gateway_offer import gateway_offer_of
from sessions.selectors.tool_access import Access, AccessCode, explain_access, explain_policy_access
from tests.harness.rows import make_key, make_policy, make_server, make_tool

pytestmark = pytest.mark.django_db

URL = "https://notes.example.com/"


@pytest.fixture
def tool() -> Tool:
    tool = make_tool(server=make_server(name="notes", transport=Transport.HTTP, url=URL), name="add_note")
    decisions.bring_up_to_date()
    return tool


def read_again(tool: Tool) -> Tool:
    return Tool.objects.select_related("server").get(pk=tool.pk)


def explain(tool: Tool, **of_key: Any) -> Access:
    decisions.bring_up_to_date()
    process_memory.reset()
    return explain_access(make_key(**of_key), read_again(tool))


def change_policy(**fields: Any) -> None:
    Policy.objects.filter(slug="default").update(**fields, version=2)


def lock_new_ones() -> None:
    change_policy(quarantine=Quarantine.NEW_AND_CHANGED)
    Tool.objects.update(approval=Approval.NEW)


def ago(seconds: int) -> Any:
    return timezone.now() - timedelta(seconds=seconds)


class TestReasons:
    def test_revoked_and_expired_keys_can_call_nothing(self, tool: Tool) -> None:
        revoked, expired = explain(tool, revoked_at=ago(1)), explain(tool, expires_at=ago(1))
        assert (revoked.can_call, revoked.code) == (False, AccessCode.KEY_REVOKED)
        assert (expired.can_call, expired.code) == (False, AccessCode.KEY_EXPIRED)
        assert revoked.fix_url == expired.fix_url == "/keys/"

    @pytest.mark.parametrize(
        ("code", "change", "leads_to"),
        [
            (
                AccessCode.SERVER_DISABLED,
                lambda: Server.objects.filter(name="notes").update(enabled=False),
                "/servers/notes/",
            ),
            (
                AccessCode.TOOL_REMOVED,
                lambda: Tool.objects.update(gone_at=timezone.now()),
                "/servers/notes/",
            ),
            (
                AccessCode.TOOL_HIDDEN,
                lambda: Tool.objects.update(hidden=True),
                "/tools/mcp__notes__add_note/#settings",
            ),
            (AccessCode.NOT_VISIBLE, lambda: change_policy(visible=["other/*"]), "/policies/default/"),
            (AccessCode.LOCKED, lock_new_ones, "/review/"),
            (
                AccessCode.SNAPSHOT,
                lambda: Server.objects.filter(name="notes").update(transport=Transport.SNAPSHOT, url=""),
                "/add-server/",
            ),
            (AccessCode.BUILTIN, lambda: Server.objects.filter(name="notes").update(kind=Kind.BUILTIN), ""),
        ],
    )
    def test_each_is_told_with_the_page_that_mends_it(
        self, tool: Tool, code: AccessCode, change: Callable[[], object], leads_to: str
    ) -> None:
        assert explain(tool).can_call
        change()
        access = explain(tool)
        assert (access.can_call, access.code, access.fix_url, access.name) == (False, code, leads_to, "")
        assert bool(access.fix) is bool(leads_to)

    def test_widest_reason_is_told_first(self, tool: Tool) -> None:
        Tool.objects.update(hidden=True)
        Server.objects.filter(name="notes").update(enabled=False)
        assert explain(tool).code is AccessCode.SERVER_DISABLED
        assert explain(tool, revoked_at=ago(1)).code is AccessCode.KEY_REVOKED

    def test_tool_that_is_not_in_the_list_yet_is_being_decided(self, tool: Tool) -> None:
        policy = Policy.objects.get(slug="default")
        gateway_offer_of(policy.pk)
        late = make_tool(server=tool.server, name="late")
        assert explain_policy_access(policy, read_again(late)).code is AccessCode.NOT_DECIDED
        decisions.bring_up_to_date()
        assert explain_policy_access(policy, read_again(late)).can_call


class TestAllowed:
    def test_tool_that_waits_for_a_search_is_found_by_one(self, tool: Tool) -> None:
        change_policy(mode=Mode.ALWAYS)
        access = explain(tool)
        assert (access.can_call, access.code, access.name) == (True, AccessCode.FOUND, "notes__add_note")
        assert access.text == "It is found by search; call_read_tool refuses it, since it may change things."
        assert access.fix_url == "/policies/default/agent/?format=gateway"

    @pytest.mark.parametrize(
        "fields",
        [
            {"mode": Mode.OFF},
            {"mode": Mode.ALWAYS, "never_defer": ["notes/*"]},
            {"mode": Mode.ALWAYS, "exposure": Exposure.NATIVE},
        ],
        ids=["nothing deferred", "loads", "native"],
    )
    def test_tool_of_the_list_is_listed(self, tool: Tool, fields: dict[str, Any]) -> None:
        change_policy(**fields)
        assert explain(tool).code is AccessCode.LISTED

    @pytest.mark.parametrize(
        ("mark", "hint", "reads"), [(True, False, True), (False, True, False), (None, True, True)]
    )
    def test_admin_s_mark_comes_before_the_definition(
        self, tool: Tool, mark: bool | None, hint: bool, reads: bool
    ) -> None:
        Tool.objects.update(read_only=mark, annotations={"readOnlyHint": hint})
        assert ("call_read_tool takes it too, since it only reads" in explain(tool).text) is reads


VISIBLE = st.sampled_from([None, [], ["*"], ["s0/*"], ["*t1"], ["s1/*", "mcp__s2__*"]])
POLICIES = st.fixed_dictionaries(
    {
        "visible": VISIBLE,
        "mode": st.sampled_from(list(Mode)),
        "quarantine": st.sampled_from(list(Quarantine)),
        "exposure": st.sampled_from(list(Exposure)),
    }
)
TOOLS = st.fixed_dictionaries(
    {
        "hidden": st.booleans(),
        "is_gone": st.booleans(),
        "approval": st.sampled_from(list(Approval)),
    }
)
SERVERS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(list(Kind)),
        "transport": st.sampled_from([Transport.HTTP, Transport.SNAPSHOT]),
        "enabled": st.sampled_from([True, True, False]),
        "tools": st.lists(TOOLS, min_size=1, max_size=3),
    }
)
KEYS = st.sampled_from([{}, {"revoked_at": -1}, {"expires_at": -1}, {"expires_at": 60}])


def fill(
    servers: list[dict[str, Any]], policies: list[dict[str, Any]], of_key: dict[str, int]
) -> list[ApiKey]:
    now = timezone.now()
    for number, wanted in enumerate(servers):
        address = URL if wanted["transport"] == Transport.HTTP else ""
        fields = {name: wanted[name] for name in ("kind", "transport", "enabled")}
        server = make_server(name=f"s{number}", url=address, **fields)
        for index, each in enumerate(wanted["tools"]):
            tool = make_tool(server=server, name=f"t{index}", hidden=each["hidden"])
            gone_at = now if each["is_gone"] else None
            Tool.objects.filter(pk=tool.pk).update(
                approval=each["approval"], approved_at=now, gone_at=gone_at
            )
    times = {name: now + timedelta(seconds=seconds) for name, seconds in of_key.items()}
    made = [make_policy(**fields) for fields in policies]
    decisions.bring_up_to_date()
    return [make_key(policy=policy, **times) for policy in made]


def can_call(key: ApiKey, tool: Tool) -> bool:
    """As the gateway finds out: the key's check, the name in its list, the look at the moment of the call."""
    if not ApiKey.objects.usable(now=timezone.now()).filter(pk=key.pk).exists():
        return False
    found = gateway_offer_of(key.policy_id).by_name.get(tool.qualified_name)
    if found is None:
        return False
    return call_targets.read_target(found.offered.text.id, read_policy(key.policy)) is not None


@given(
    servers=st.lists(SERVERS, min_size=1, max_size=4),
    policies=st.lists(POLICIES, min_size=1, max_size=3),
    of_key=KEYS,
)
@hypothesis_settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_answer_is_what_the_gateway_does(
    servers: list[dict[str, Any]], policies: list[dict[str, Any]], of_key: dict[str, int]
) -> None:
    process_memory.reset()
    with transaction.atomic():
        for key in fill(servers, policies, of_key):
            for tool in Tool.objects.select_related("server"):
                access = explain_access(key, tool)
                assert access.can_call is can_call(key, tool), (access, tool)
                assert access.code is not AccessCode.NOT_DECIDED
                if access.can_call:
                    offer = gateway_offer_of(key.policy_id)
                    is_listed = access.name in {listed.name for listed in offer.listed}
                    assert access.code is (AccessCode.LISTED if is_listed else AccessCode.FOUND)
        transaction.set_rollback(True)
