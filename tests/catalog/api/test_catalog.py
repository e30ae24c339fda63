"""The catalog by REST: what agents read and what admins change."""

from typing import Any

import pytest

from catalog.access.actors import COMMAND_LINE
from catalog.models import Change, Job, Policy, Server, Tool
from catalog.services import policies, undo
from catalog.services.connections import read_connection
from tests.harness.rows import make_run, make_server
from tests.sessions.api.calling import Agent, fill_catalog, follow, make_agent

pytestmark = pytest.mark.django_db

CREATE = "mcp__github__create_issue"


@pytest.fixture(autouse=True)
def filled(db: None) -> None:
    fill_catalog()


@pytest.fixture
def admin() -> Agent:
    return make_agent(admin=True)


@pytest.fixture
def narrow() -> Agent:
    """An agent whose policy shows slack only."""
    policy = policies.create_policy(wanted={"slug": "narrow", "visible": ["slack/*"]}, actor=COMMAND_LINE)
    follow()
    return make_agent(policy=policy)


def names(page: dict[str, Any]) -> list[str]:
    return [item["name"] for item in page["items"]]


class TestTools:
    def test_tool_has_every_field(self, admin: Agent) -> None:
        tool = admin.read(f"/tools/{CREATE}")
        assert tool["tool"] == "create_issue"
        assert tool["size"]["tokens"] == -(-tool["size"]["chars"] // 4)
        assert tool["decisions"] == {"default": {"decision": "defer", "reason": "mode_always"}}
        assert set(tool) == {
            "name",
            "tool",
            "server",
            "kind",
            "title",
            "description",
            "inputSchema",
            "outputSchema",
            "annotations",
            "read_only",
            "is_read_only",
            "meta",
            "size",
            "loading",
            "keywords",
            "tags",
            "state",
            "decisions",
        }

    def test_pages_and_filters(self, admin: Agent) -> None:
        first = admin.read("/tools?limit=3")
        rest = admin.read(f"/tools?limit=3&cursor={first['next']}")
        assert names(first) + names(rest) == sorted(Tool.objects.values_list("qualified_name", flat=True))
        assert rest["next"] is None
        assert names(admin.read("/tools?server=slack")) == ["mcp__slack__send_message"]
        assert names(admin.read("/tools?loading=always")) == []

    def test_query_is_searched_and_gives_the_best_first(self, admin: Agent) -> None:
        assert names(admin.read("/tools?q=open+an+issue"))[:2] == [CREATE, "mcp__github__list_issues"]
        assert names(admin.read("/tools?q=select:send_message")) == ["mcp__slack__send_message"]
        assert names(admin.read("/tools?q=issue&server=slack")) == []
        assert names(admin.read("/tools?q=issue&loading=always")) == []

    def test_found_tools_are_paged_in_their_order(self, admin: Agent) -> None:
        whole = names(admin.read("/tools?q=issue"))
        first = admin.read("/tools?q=issue&limit=1")
        rest = admin.read(f"/tools?q=issue&limit=1&cursor={first['next']}")
        assert [*names(first), *names(rest)] == whole
        assert (len(whole), rest["next"]) == (2, None)
        by_name = admin.read("/tools?limit=1")["next"]
        assert admin.get(f"/tools?q=issue&cursor={by_name}").status_code == 422

    def test_hidden_tools_are_found_by_their_words(self, admin: Agent) -> None:
        admin.call("PATCH", f"/tools/{CREATE}", {"hidden": True})
        assert names(admin.read("/tools?q=open+issue&state=hidden")) == [CREATE]
        assert CREATE not in names(admin.read("/tools?q=open+issue"))

    def test_agent_finds_what_its_policy_shows_and_no_more(self, narrow: Agent) -> None:
        assert names(narrow.read("/tools?q=message+issue")) == ["mcp__slack__send_message"]
        assert names(narrow.read("/tools?q=issue")) == []

    def test_agent_sees_its_policys_tools_and_decisions_only(self, narrow: Agent) -> None:
        assert names(narrow.read("/tools")) == ["mcp__slack__send_message"]
        assert list(narrow.read("/tools/mcp__slack__send_message")["decisions"]) == ["narrow"]
        assert narrow.get(f"/tools/{CREATE}").status_code == 404
        assert names(narrow.read("/tools?state=hidden")) == ["mcp__slack__send_message"]

    def test_admin_sets_loading_and_it_is_recorded_with_the_keys_name(self, admin: Agent) -> None:
        changed = admin.call("PATCH", f"/tools/{CREATE}", {"loading": "always", "keywords": ["bug"]}).json()
        assert (changed["loading"], changed["keywords"]) == ("always", ["bug"])
        follow()
        assert admin.read(f"/tools/{CREATE}")["decisions"]["default"] == {
            "decision": "load",
            "reason": "tool_always",
        }
        assert Change.objects.filter(subject="tool", actor__startswith="key tester").count() == 1

    def test_admin_sets_tags_as_a_whole_and_takes_them_back(self, admin: Agent) -> None:
        path = f"/tools/{CREATE}"
        assert admin.call("PATCH", path, {"tags": ["work", " first  aid "]}).json()["tags"] == [
            "first aid",
            "work",
        ]
        assert admin.call("PATCH", path, {"tags": ["work"]}).json()["tags"] == ["work"]
        assert admin.call("PATCH", path, {"loading": "always"}).json()["tags"] == ["work"]
        change = Change.objects.filter(subject="tool", after={"tags": ["work"]}).get()
        undo.undo_change(change=change, actor=COMMAND_LINE)
        assert admin.read(path)["tags"] == ["first aid", "work"]
        assert admin.call("PATCH", path, {"tags": ["x" * 41]}).status_code == 422

    def test_tags_alone_ask_for_no_decisions(self, admin: Agent) -> None:
        Job.objects.all().delete()
        admin.call("PATCH", f"/tools/{CREATE}", {"tags": ["work"]})
        assert not Job.objects.exists()

    @pytest.mark.parametrize("query", ["", "?q=issue"])
    def test_number_of_queries_does_not_grow_with_the_page(
        self, admin: Agent, django_assert_max_num_queries: Any, query: str
    ) -> None:
        admin.read(f"/tools{query}")
        with django_assert_max_num_queries(6 if query else 4):
            admin.read(f"/tools{query}")

    def test_admins_mark_counts_before_the_definitions_hint(self, admin: Agent) -> None:
        def send(mark: bool | None) -> tuple[bool | None, bool]:
            shown = admin.call("PATCH", f"/tools/{CREATE}", {"read_only": mark}).json()
            return shown["read_only"], shown["is_read_only"]

        Tool.objects.filter(qualified_name=CREATE).update(annotations={"readOnlyHint": True})
        assert send(None) == (None, True)
        assert send(False) == (False, False)
        sent_back = admin.call("PATCH", f"/tools/{CREATE}", admin.read(f"/tools/{CREATE}")).json()
        assert sent_back["read_only"] is False
        assert admin.call("PATCH", f"/tools/{CREATE}", {"loading": "always"}).json()["read_only"] is False
        assert send(None) == (None, True)
        assert admin.call("PATCH", f"/tools/{CREATE}", {"read_only": "yes"}).status_code == 422


class TestServers:
    def test_admin_reads_masked_settings_and_agents_none(self, admin: Agent, narrow: Agent) -> None:
        secret = "s3cr3t-value-0123456789"
        made = admin.post(
            "/servers",
            {"name": "api", "url": "https://mcp.test/", "headers": {"Authorization": f"Bearer {secret}"}},
            status=201,
        )
        assert made["settings"]["headers"]["Authorization"].startswith("Bearer ${")
        assert secret not in str(admin.read("/servers"))
        assert narrow.get("/servers/api").status_code == 404
        shown = narrow.read("/servers")
        assert names(shown) == ["slack"]
        assert shown["items"][0]["settings"] is None
        assert (shown["items"][0]["tools"], shown["items"][0]["status"]) == (1, "waiting")

    def test_agents_are_not_told_what_went_wrong(self, admin: Agent, narrow: Agent) -> None:
        Server.objects.filter(name="slack").update(last_error="nobody answers at 10.0.0.7")
        assert admin.read("/servers/slack")["last_error"] == "nobody answers at 10.0.0.7"
        assert narrow.read("/servers/slack")["last_error"] == ""
        assert narrow.read("/servers")["items"][0]["last_error"] == ""

    def test_one_server_has_every_field_and_its_description(self, admin: Agent, narrow: Agent) -> None:
        Server.objects.filter(name="slack").update(description="Messages and channels.")
        shown = admin.read("/servers/slack")
        assert shown.keys() == {
            *("name", "address", "kind", "transport", "enabled", "description", "deferLoading", "status"),
            *("demo", "tools", "tokens", "last_refreshed_at", "last_error", "settings", "keepsNoState"),
            "auth",
        }
        assert (
            shown["description"] == narrow.read("/servers/slack")["description"] == "Messages and channels."
        )
        sent = admin.call("PATCH", "/servers/slack", {"description": "Other words."})
        assert (sent.status_code, sent.json()["description"]) == (200, "Other words.")

    def test_admin_says_that_a_server_keeps_no_state(self, admin: Agent) -> None:
        made = {"name": "api", "url": "https://mcp.test/", "keepsNoState": True}
        assert admin.post("/servers", made, status=201)["keepsNoState"] is True
        shown = admin.call("PATCH", "/servers/api", {"enabled": False}).json()
        assert shown["keepsNoState"] is True
        assert admin.call("PATCH", "/servers/api", {**shown, "keepsNoState": None}).json()["keepsNoState"]
        assert admin.call("PATCH", "/servers/api", {"keepsNoState": False}).json()["keepsNoState"] is False
        assert admin.call("PATCH", "/servers/api", {"keepsNoState": "yes"}).status_code == 422

    def test_admin_sets_how_often_a_server_is_asked(self, admin: Agent) -> None:
        made = {"name": "api", "url": "https://mcp.test/", "refreshIntervalSeconds": 60}
        assert admin.post("/servers", made, status=201)["settings"]["refreshIntervalSeconds"] == 60
        changed = admin.call("PATCH", "/servers/api", {"refreshIntervalSeconds": 120}).json()
        assert changed["settings"]["refreshIntervalSeconds"] == 120
        assert (
            admin.call("PATCH", "/servers/api", {"enabled": True}).json()["settings"] == changed["settings"]
        )
        for wrong in (9, 2**31 - 1):
            assert admin.call("PATCH", "/servers/api", {"refreshIntervalSeconds": wrong}).status_code == 422

    def test_masked_secret_sent_back_keeps_its_value(self, admin: Agent) -> None:
        headers = {"Authorization": "Bearer s3cr3t-value-0123456789"}
        admin.post("/servers", {"name": "api", "url": "https://mcp.test/", "headers": headers}, status=201)
        before = Server.objects.get(name="api").sealed
        settings = admin.read("/servers/api")["settings"]
        sent = {"url": settings["url"], "headers": settings["headers"], "deferLoading": True}
        assert admin.call("PATCH", "/servers/api", sent).json()["deferLoading"] is True
        assert Server.objects.get(name="api").sealed == before

    SECRETS: dict[str, str] = {"Authorization": "Bearer ${TOKEN}", "X-Key": "s3cr3t-value-0123456789"}

    def test_secrets_do_not_follow_to_another_host(self, admin: Agent) -> None:
        admin.post(
            "/servers", {"name": "api", "url": "https://mcp.test/", "headers": self.SECRETS}, status=201
        )
        before = Server.objects.get(name="api").sealed
        moved = {"url": "https://other.test/"}
        refused = admin.call("PATCH", "/servers/api", moved)
        assert refused.status_code == 422
        places = [error["place"].rpartition("headers.")[2] for error in refused.json()["errors"]]
        assert sorted(places) == ["Authorization", "X-Key"]
        shown = admin.read("/servers/api")["settings"]["headers"]
        refused = admin.call("PATCH", "/servers/api", {**moved, "headers": shown})
        assert [error["place"] for error in refused.json()["errors"]] == ["mcpServers.api.headers.X-Key"]
        assert Server.objects.get(name="api").sealed == before
        assert admin.call("PATCH", "/servers/api", {**moved, "headers": self.SECRETS}).status_code == 200
        assert read_connection(Server.objects.get(name="api")).headers == self.SECRETS

    @pytest.mark.parametrize("changed", [{"transport": "sse"}, {"url": "https://mcp.test/other"}])
    def test_secrets_stay_at_the_same_host(self, admin: Agent, changed: dict[str, Any]) -> None:
        admin.post(
            "/servers", {"name": "api", "url": "https://mcp.test/", "headers": self.SECRETS}, status=201
        )
        assert admin.call("PATCH", "/servers/api", changed).status_code == 200
        assert read_connection(Server.objects.get(name="api")).headers == self.SECRETS

    @pytest.mark.parametrize("name", ["Host", "host", ":authority", "Transfer-Encoding", "Connection", "a b"])
    def test_header_that_is_not_a_definitions_to_set_is_refused(self, admin: Agent, name: str) -> None:
        body = {"name": "api", "url": "https://mcp.test/", "headers": {name: "evil.test"}}
        refused = admin.call("POST", "/servers", body)
        assert refused.status_code == 422
        assert name in refused.json()["errors"][0]["place"]

    def test_new_server_is_asked_for_its_tools(self, admin: Agent) -> None:
        admin.post("/servers", {"name": "api", "url": "https://mcp.test/"}, status=201)
        assert admin.read("/servers/api/refresh")["state"] == "waiting"
        assert Job.objects.filter(kind="refresh_server").count() == 1
        assert admin.call("POST", "/servers", {"name": "api", "url": "https://mcp.test/"}).status_code == 409

    def test_snapshot_brings_its_tools_along(self, admin: Agent) -> None:
        made = admin.post("/servers", {"name": "own", "tools": [{"name": "wave"}]}, status=201)
        assert (made["transport"], made["tools"]) == ("snapshot", 1)
        follow()
        assert admin.read("/tools/mcp__own__wave")["server"] == "own"

    @pytest.mark.parametrize(
        "bad",
        [
            {"name": 5},
            {"description": "no name"},
            {"name": "wave", "description": 5},
            {"name": "wave", "inputSchema": {"type": "object", "properties": {"n": {"type": 7}}}},
            {"name": "fine"},
        ],
    )
    def test_definition_that_cannot_be_used_is_named(self, admin: Agent, bad: dict[str, Any]) -> None:
        for method, path, body in (("POST", "/servers", {"name": "own"}), ("PATCH", "/servers/slack", {})):
            refused = admin.call(method, path, {**body, "tools": [{"name": "fine"}, bad]})
            assert refused.status_code == 422
            assert [error["place"] for error in refused.json()["errors"]] == ["tools[1]"]
        assert not Server.objects.filter(name="own").exists()
        assert not Tool.objects.filter(name="fine").exists()

    def test_of_many_bad_definitions_the_first_are_named(self, admin: Agent) -> None:
        refused = admin.call("POST", "/servers", {"name": "own", "tools": [{}] * 1000})
        errors = refused.json()["errors"]
        assert (errors[0]["place"], errors[-2]["place"]) == ("tools[0]", "tools[99]")
        assert errors[-1] == {"place": "tools", "message": "900 more cannot be used"}

    def test_snapshot_that_gets_an_address_keeps_what_was_set(self, admin: Agent) -> None:
        admin.post(
            "/servers", {"name": "own", "tools": [], "deferLoading": True, "kind": "plugin"}, status=201
        )
        changed = admin.call("PATCH", "/servers/own", {"url": "https://mcp.test/"}).json()
        assert (changed["transport"], changed["deferLoading"], changed["kind"]) == ("http", True, "plugin")

    @pytest.mark.parametrize(
        "address",
        [
            {"url": "https://mcp.test/"},
            {"headers": {"X-A": "b"}},
            {"command": "npx", "args": ["-y"], "env": {"A": "b"}},
            {"transport": "http"},
            {"settings": {"url": "https://mcp.test/"}},
        ],
    )
    def test_tools_and_an_address_are_not_given_together(self, admin: Agent, address: dict[str, Any]) -> None:
        given = address.get("settings", address)
        for method, path, body in (("POST", "/servers", {"name": "own"}), ("PATCH", "/servers/slack", {})):
            refused = admin.call(method, path, {**body, "tools": [{"name": "wave"}], **address})
            assert refused.status_code == 422
            assert {error["place"] for error in refused.json()["errors"]} == set(given)
        assert not Server.objects.filter(name="own").exists()
        assert not Tool.objects.filter(name="wave").exists()

    def test_snapshot_as_it_was_read_takes_other_tools(self, admin: Agent) -> None:
        admin.post("/servers", {"name": "own", "tools": [{"name": "wave"}]}, status=201)
        shown = admin.read("/servers/own")
        assert admin.call("PATCH", "/servers/own", shown).json() == shown
        tools = [{"name": "wave"}, {"name": "nod"}]
        assert admin.call("PATCH", "/servers/own", {**shown, "tools": tools}).json()["tools"] == 2

    def test_disabled_server_leaves_lists_and_searches(self, admin: Agent) -> None:
        session = make_agent().begin()
        assert admin.call("PATCH", "/servers/github", {"enabled": False}).json()["status"] == "disabled"
        follow()
        assert session.state()["counts"]["total"] == 2
        assert session.search("select:create_issue")["missing"] == ["create_issue"]

    def test_deleted_server_takes_its_tools_and_decisions_along(self, admin: Agent) -> None:
        session = make_agent().begin()
        session.search(f"select:{CREATE}")
        assert admin.call("DELETE", "/servers/github").status_code == 204
        state = session.state()
        assert (state["counts"]["total"], state["loaded"]) == (2, [])
        follow()
        assert session.state()["counts"]["total"] == 2
        assert admin.get("/servers/github").status_code == 404

    def test_refresh_tells_how_the_last_one_went(self, admin: Agent) -> None:
        admin.post("/servers", {"name": "api", "url": "https://mcp.test/"}, status=201)
        make_run(server=Server.objects.get(name="api"), error_code="refused", error="nobody there")
        told = admin.post("/servers/api/refresh", {}, status=202)
        assert (told["state"], told["last_run"]["error"]) == ("waiting", "nobody there")
        assert admin.call("POST", "/servers/github/refresh").status_code == 409

    @pytest.mark.parametrize("body", [{"name": "x"}, {"name": "x", "url": "ftp://a"}, {"name": ""}, {}])
    def test_address_that_cannot_be_used_is_422(self, admin: Agent, body: dict[str, Any]) -> None:
        answer = admin.call("POST", "/servers", body)
        assert answer.status_code == 422
        assert not Server.objects.filter(name="x").exists()


class TestNameWithASlash:
    PATH = "/servers/io.example%2Fnotes"

    def test_every_operation_on_a_server_takes_it(self, admin: Agent) -> None:
        admin.post("/servers", {"name": "io.example/notes", "url": "https://mcp.test/"}, status=201)
        assert admin.read(self.PATH)["name"] == "io.example/notes"
        assert admin.call("PATCH", self.PATH, {"deferLoading": True}).json()["deferLoading"] is True
        assert admin.post(f"{self.PATH}/refresh", {}, status=202)["server"] == "io.example/notes"
        assert admin.read(f"{self.PATH}/refresh")["state"] == "waiting"
        assert admin.call("DELETE", self.PATH).status_code == 204
        assert admin.get(self.PATH).status_code == 404

    def test_its_tools_are_found_by_name_and_by_server(self, admin: Agent) -> None:
        admin.post("/servers", {"name": "io.example/notes", "tools": [{"name": "wave"}]}, status=201)
        follow()
        listed = names(admin.read("/tools?server=io.example/notes"))
        assert listed == ["mcp__io_example_notes__wave"]
        assert names(admin.read("/tools?q=wave&server=io.example%2Fnotes")) == listed
        assert admin.read(f"/tools/{listed[0]}")["server"] == "io.example/notes"


class TestNameThatCannotBeAddressed:
    @pytest.mark.parametrize("name", ["..", "a/../b", "x/refresh", "/a", "~12"])
    @pytest.mark.parametrize("source", [{"url": "https://mcp.test/"}, {"tools": [{"name": "wave"}]}])
    def test_no_new_server_has_it(self, admin: Agent, name: str, source: dict[str, Any]) -> None:
        assert admin.call("POST", "/servers", {"name": name, **source}).status_code == 422
        assert not Server.objects.filter(name=name).exists()

    @pytest.mark.parametrize("name", ["..", "a/../b", "x/refresh", "~99999"])
    def test_server_of_before_is_read_changed_and_removed(self, admin: Agent, name: str) -> None:
        number = make_server(name=name).pk
        [shown] = [one for one in admin.read("/servers")["items"] if one["name"] == name]
        assert shown["address"] == f"~{number}"
        path = f"/servers/{shown['address']}"
        assert admin.read(path) == shown
        assert admin.call("PATCH", path, {**shown, "deferLoading": True}).json()["deferLoading"] is True
        snapshot = {"tools": [{"name": "wave"}]}
        assert admin.call("PATCH", path, snapshot).json()["tools"] == 1
        assert admin.read(f"{path}/refresh")["server"] == name
        assert admin.call("DELETE", path).status_code == 204
        assert not Server.objects.filter(name=name).exists()

    def test_server_of_before_gets_another_address(self, admin: Agent) -> None:
        server = make_server(name="a/../b", transport="http", url="https://old.test/")
        shown = admin.call("PATCH", f"/servers/~{server.pk}", {"url": "https://new.test/"}).json()
        assert shown["settings"]["url"] == "https://new.test/"

    def test_agent_reads_by_number_what_its_policy_shows_and_no_more(self, narrow: Agent) -> None:
        slack, github = (Server.objects.get(name=name) for name in ("slack", "github"))
        assert narrow.read(f"/servers/~{slack.pk}")["name"] == "slack"
        assert narrow.get(f"/servers/~{github.pk}").status_code == 404


class TestPolicies:
    def test_made_changed_rolled_back_and_removed(self, admin: Agent) -> None:
        made = admin.post("/policies", {"slug": "coding", "mode": "auto"}, status=201)
        assert (made["version"], made["fields"]["mode"]) == (1, "auto")
        changed = admin.call("PATCH", "/policies/coding", {"maxResults": 9}).json()
        assert (changed["version"], changed["fields"]["max_results"]) == (2, 9)
        assert [version["number"] for version in admin.read("/policies/coding/versions")["items"]] == [2, 1]
        assert admin.post("/policies/coding/rollback", {"version": 1})["fields"]["max_results"] == 5
        assert admin.call("DELETE", "/policies/coding").status_code == 204
        assert admin.get("/policies/coding").status_code == 404
        assert admin.call("DELETE", "/policies/default").status_code == 409

    def test_mistakes_are_told_with_their_places(self, admin: Agent) -> None:
        answer = admin.call("PATCH", "/policies/default", {"mode": "sometimes", "colour": "red"})
        assert answer.status_code == 422
        assert {error["place"] for error in answer.json()["errors"]} == {"policy.mode", "policy.colour"}

    def test_preview_tells_what_would_flip_and_saves_nothing(self, admin: Agent) -> None:
        told = admin.post("/policies/default/preview", {"policy": {"never_defer": ["slack/*"]}})
        assert [flip["name"] for flip in told["flips"]] == ["mcp__slack__send_message"]
        assert told["flips"][0]["after"] == {"decision": "load", "reason": "never_defer"}
        assert told["tokens_before"] == admin.read("/policies/default/tools")["tokens"]["sent"]
        assert told["tokens_after"] != told["tokens_before"]
        assert Policy.objects.get(slug="default").never_defer == []


class TestConfig:
    CONFIG = {"toolSearch": {"enabled": True}, "mcpServers": {"api": {"url": "https://mcp.test/"}}}

    def test_import_export_and_dry_run(self, admin: Agent) -> None:
        plan = admin.post("/config?dry_run=true", self.CONFIG)
        assert (plan["added"], plan["dialect"]) == (["api"], "pizzapi")
        assert not Server.objects.filter(name="api").exists()
        admin.post("/config", self.CONFIG)
        assert admin.post("/config", self.CONFIG)["unchanged"] == ["api"]
        assert "api" in admin.read("/config?dialect=claude")["mcpServers"]


def test_table_of_models_is_edited_and_obeyed(admin: Agent) -> None:
    row = {"name_pattern": "house-model*", "provider": "anthropic", "hosted_search": True}
    made = admin.post("/models", row, status=201)
    assert (made["input_price"], made["cached_input_price"]) == (None, None)
    priced = admin.call(
        "PATCH", f"/models/{made['id']}", {"input_price": 3, "cached_input_price": 0.3}
    ).json()
    assert (priced["input_price"], priced["cached_input_price"], priced["prices_are_examples"]) == (
        3,
        0.3,
        False,
    )
    assert admin.call("PATCH", f"/models/{made['id']}", {"input_price": "3"}).status_code == 422
    assert admin.call("PATCH", f"/models/{made['id']}", {"input_price": -3}).status_code == 422
    unset = admin.call("PATCH", f"/models/{made['id']}", {"cached_input_price": None}).json()
    assert (unset["input_price"], unset["cached_input_price"]) == (3, None)
    assert admin.call("POST", "/models", row).status_code == 409
    session = make_agent().begin(model="house-model-2")
    assert session.tools(format="auto")["format"] == "anthropic"
    assert admin.call("PUT", f"/models/{made['id']}", {**row, "hosted_search": False}).status_code == 200
    assert admin.call("DELETE", f"/models/{made['id']}").status_code == 204
    assert admin.call("DELETE", f"/models/{made['id']}").status_code == 404


def test_servers_are_paged(admin: Agent) -> None:
    for number in range(3):
        make_server(name=f"more-{number}")
    first = admin.read("/servers?limit=4")
    assert names(first) + names(admin.read(f"/servers?limit=4&cursor={first['next']}")) == [
        "files",
        "github",
        "more-0",
        "more-1",
        "more-2",
        "slack",
    ]
