"""The System page and the metrics: nodes, jobs, lags."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from catalog.access.actors import SYSTEM
from catalog.access.roles import Role
from catalog.domain.encoder_setting import EncoderSetting
from catalog.models import CatalogVersion, EncoderState, Job, Scope
from catalog.models.jobs import JobKind, JobState
from catalog.selectors.encoder import find_encoder
from catalog.services import jobs, keys, reindex
from sessions.models import GatewayProcess, OpenLease
from tests.harness.encoders import encoder_in_force
from tests.harness.nodes import find_free_port
from tests.harness.pages import HTMX, broken_rules, signed_in, text_of, visible_text
from tests.harness.rows import make_run, make_server, make_tool
from toolsearch_site.cluster import heartbeat, leases
from toolsearch_site.models import Node
from toolsearch_site.monitoring import metrics

pytestmark = pytest.mark.django_db
TOKEN = "a-token-of-some-length"


def tell(name: str, *roles: str) -> None:
    with override_settings(NODE=name):
        heartbeat.write(roles=roles, started_at=timezone.now())


class TestNodes:
    def test_node_tells_of_itself_and_of_its_index(self) -> None:
        make_tool()
        tell("web-1", "web")
        assert Node.objects.get().index_version is None
        reindex.bring_up_to_date()
        indexed = CatalogVersion.current()
        make_tool()
        make_tool()
        tell("web-1", "web")
        node = Node.objects.get()
        assert (node.name, node.roles, node.version) == ("web-1/web", "web", heartbeat.product_version())
        assert (node.index_version, node.index_behind) == (indexed, 2)

    def test_one_that_stops_well_is_forgotten_at_once_and_a_dead_one_after_a_day(self) -> None:
        for name in ("web-1", "web-2", "web-3"):
            tell(name, "web")
        with override_settings(NODE="web-1"):
            heartbeat.remove(["web"])
        Node.objects.filter(name="web-2/web").update(seen_at=timezone.now() - timedelta(days=2))
        tell("web-3", "web")
        assert [node.name for node in Node.objects.all()] == ["web-3/web"]

    def test_node_tells_until_it_stops_also_when_the_database_was_away(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        stopping, done = Event(), []

        def tell(**_: Any) -> None:
            done.append("tell")
            if len(done) == 1:
                raise OperationalError("the server is away")
            stopping.set()

        monkeypatch.setattr(heartbeat, "WRITE_EVERY_SECONDS", 0.0)
        monkeypatch.setattr(heartbeat, "write", tell)
        monkeypatch.setattr(heartbeat, "remove", lambda roles: done.append(f"leave {roles}"))
        monkeypatch.setattr("toolsearch_site.cluster.heartbeat.connection.close", lambda: None)
        heartbeat._write_until_stopped(stopping, ["web"])
        assert done == ["tell", "tell", "leave ['web']"]
        assert "cannot be written" in caplog.text


class TestPage:
    def test_shows_nodes_jobs_and_versions(self) -> None:
        tell("web-1", "web")
        tell("worker-1", "worker")
        Node.objects.filter(name="worker-1/worker").update(seen_at=timezone.now() - timedelta(minutes=5))
        jobs.request_job(kind=JobKind.DECIDE)
        make_run(server=make_server(), error_code="timeout")
        leases.acquire(leases.SCHEDULER_LEASE, holder="sched-1:12:abc", length=timedelta(minutes=1))
        response = signed_in(Role.ADMIN).get("/system/")
        shown = visible_text(response)
        assert response.status_code == 200
        assert "web-1 web running" in shown
        assert "1 not reporting" in shown
        assert "silent for 5 min" in shown
        assert "sched-1 schedules" in shown
        assert "Decide which tools load 1 0" in shown
        assert "1 failed" in shown
        refreshing = next(q for q in response.context["system"].queues if q.kind == JobKind.REFRESH_SERVER)
        assert refreshing.failed == 1
        assert not broken_rules(response)

    def test_index_that_follows_is_called_up_to_date(self) -> None:
        tell("web-1", "web")
        Node.objects.update(index_version=34, index_behind=0)
        assert "running up to date" in visible_text(signed_in(Role.ADMIN).get("/system/"))

    def test_is_the_part_alone_when_htmx_asks(self) -> None:
        response = signed_in(Role.ADMIN).get("/system/", headers=HTMX)
        assert "<html" not in text_of(response)
        assert "No node has reported yet" in visible_text(response)

    @pytest.mark.parametrize("role", [Role.VIEWER, Role.EDITOR])
    def test_is_for_admins(self, role: Role) -> None:
        assert signed_in(role).get("/system/").status_code == 403
        assert "/system/" not in text_of(signed_in(role).get("/"))

    def test_refuses_other_methods(self) -> None:
        assert signed_in(Role.ADMIN).post("/system/").status_code == 405

    def test_number_of_reads_does_not_grow_with_nodes_and_jobs(self) -> None:
        client = signed_in(Role.ADMIN)
        with CaptureQueriesContext(connection) as alone:
            client.get("/system/")
        for number in range(30):
            tell(f"web-{number}", "web")
            jobs.request_job(kind=JobKind.REFRESH_SERVER, subject=number)
        with CaptureQueriesContext(connection) as many:
            client.get("/system/")
        assert len(many) == len(alone) < 25


class TestMetrics:
    @pytest.fixture(autouse=True)
    def token(self) -> Iterator[None]:
        with override_settings(METRICS_TOKEN=TOKEN):
            yield

    def read(self, client: Client, secret: str = TOKEN) -> dict[str, Any]:
        response = client.get("/metrics", headers={"Authorization": f"Bearer {secret}"})
        assert response.status_code == 200
        return {
            sample.name + "".join(f"|{value}" for _, value in sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(response.content.decode())
            for sample in family.samples
        }

    @pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", "Basic YTpi"])
    def test_are_not_for_everybody(self, client: Client, header: str) -> None:
        response = client.get("/metrics", headers={"Authorization": header})
        assert response.status_code == 401
        assert "toolsearch_" not in text_of(response)

    @override_settings(METRICS_TOKEN=None)
    def test_are_for_admin_keys_and_not_for_agents(self, client: Client) -> None:
        agent = keys.create_key(name="agent", actor=SYSTEM)
        admin = keys.create_key(name="ops", actor=SYSTEM, scope=Scope.ADMIN)
        assert "toolsearch_database_up" in self.read(client, admin.text)
        refused = client.get("/metrics", headers={"Authorization": f"Bearer {agent.text}"})
        assert refused.status_code == 403

    def test_no_token_is_not_an_empty_token(self, client: Client) -> None:
        with override_settings(METRICS_TOKEN=None):
            assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 401

    def test_count_calls_through_the_gateway(self, client: Client) -> None:
        before = self.read(client)
        metrics.count_call("ok", "call_tool", 0.003)
        metrics.count_call("refused", "direct", -0.001)  # two clocks may disagree
        after = self.read(client)
        grown = {name: after[name] - before.get(name, 0) for name in after if "gateway" in name}
        assert grown["toolsearch_gateway_calls_total|ok|call_tool"] == 1
        assert grown["toolsearch_gateway_calls_total|refused|direct"] == 1
        assert grown["toolsearch_gateway_added_seconds_count"] == 2
        assert grown["toolsearch_gateway_added_seconds_bucket|0.001"] == 1
        assert grown["toolsearch_gateway_added_seconds_sum"] == pytest.approx(0.003)

    def test_tell_what_the_gateway_has_open(self, client: Client) -> None:
        assert self.read(client)["toolsearch_gateway_open_streams"] == 0
        now = timezone.now()
        for age, streams in ((0, 2), (5, 3), (60, 100)):
            process = GatewayProcess.objects.create(
                process=f"node:{age}",
                started_at=now,
                seen_at=now - timedelta(seconds=age),
                open_streams=streams,
                open_calls=1,
            )
            OpenLease.objects.create(process=process, server=make_server(), opened_at=now, last_used_at=now)
        told = self.read(client)
        names = ("processes", "open_leases", "open_streams", "open_calls")
        assert [told[f"toolsearch_gateway_{name}"] for name in names] == [2, 2, 5, 2]

    def test_count_polls_searches_and_pages_apart(self, client: Client) -> None:
        key = {"Authorization": f"Bearer {keys.create_key(name='agent', actor=SYSTEM).text}"}
        before = self.read(client)
        client.get("/api/v1/policies/default/tools", headers=key)
        made = client.post("/api/v1/sessions", {}, "application/json", headers=key).json()
        path = f"/api/v1/sessions/{made['id']}"
        client.post(f"{path}/search", {"query": "kite"}, "application/json", headers=key)
        client.get("/sign-in/")
        after = self.read(client)
        grown = {name: after[name] - before.get(name, 0) for name in after if "requests_total" in name}
        assert {name: count for name, count in grown.items() if count} == {
            "toolsearch_requests_total|poll|GET|200": 1,
            "toolsearch_requests_total|api|POST|201": 1,
            "toolsearch_requests_total|search|POST|200": 1,
            "toolsearch_requests_total|console|GET|200": 1,
        }

    def test_tell_how_far_vectors_are_and_what_their_endpoint_failed(
        self, client: Client, tmp_path: Path
    ) -> None:
        words = self.read(client)
        assert (words["toolsearch_vectors_missing"], words["toolsearch_encoder_failing"]) == (0, 0)
        away = EncoderSetting(f"http://127.0.0.1:{find_free_port()}/embeddings", model="tiny-1")
        with encoder_in_force(away, tmp_path / "rest.json"):
            encoder = find_encoder()
            assert encoder is not None
            EncoderState.objects.create(name=encoder.name, done=1, total=4, used_at=timezone.now())
            assert encoder.encode_query("kite") is None
            told = self.read(client)
        names = ("vectors_missing", "encoder_failing", "encoder_endpoint_failures_total")
        assert [told[f"toolsearch_{name}"] for name in names] == [3, 1, 1]

    def test_tell_lags_and_queues(self, client: Client) -> None:
        make_tool()
        assert self.read(client)["toolsearch_index_present"] == 0
        reindex.bring_up_to_date()
        make_tool()
        make_tool()
        job = jobs.request_job(kind=JobKind.DECIDE)
        Job.objects.filter(pk=job.pk).update(run_after=timezone.now() - timedelta(seconds=30))
        shown = self.read(client)
        assert shown["toolsearch_index_lag_versions"] == 2
        assert shown["toolsearch_jobs|decide|waiting"] == 1
        assert 30 <= shown["toolsearch_queue_age_seconds|decide"] < 60
        assert 30 <= shown["toolsearch_decision_lag_seconds"] < 60
        assert shown["toolsearch_decision_lag_policies"] == 1

    def test_failed_jobs_have_no_age(self, client: Client) -> None:
        job = jobs.request_job(kind=JobKind.DECIDE)
        Job.objects.filter(pk=job.pk).update(state=JobState.FAILED, finished_at=timezone.now())
        assert self.read(client)["toolsearch_queue_age_seconds|decide"] == 0

    def test_answer_without_the_database(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail() -> None:
            raise OperationalError("the server is away")

        monkeypatch.setattr(metrics, "read_system", fail)
        assert self.read(client)["toolsearch_database_up"] == 0
