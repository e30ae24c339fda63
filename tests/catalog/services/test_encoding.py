"""Each text is encoded once and kept; search goes by words until the vectors are there, and by both then."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.models import EncoderState, Job, Server, Tool, ToolVector
from catalog.models.jobs import JobKind, JobState
from catalog.search import generations, index
from catalog.search.meaning import Vectors
from catalog.search.onnx_encoder import OnnxEncoder
from catalog.selectors import encoder as encoders
from catalog.selectors import health, search
from catalog.services import encoding, index_follower, jobs, reindex, tools, vector_retention
from tests.harness.clocks import set_clock
from tests.harness.embeddings_server import EmbeddingsServer, running_embeddings_server
from tests.harness.encoders import encoder_in_force, end_rest, endpoint_setting, onnx_setting, work
from tests.harness.rows import make_server, make_tool
from tests.harness.tiny_encoder import make_encoder

pytestmark = pytest.mark.django_db

NAMES = {
    "plan_appointment": "Plan an appointment.",
    "read_weather": "Rain and storm.",
    "pay_bill": "Pay a bill.",
}


@pytest.fixture
def catalog() -> Server:
    server = make_server()
    for name, description in NAMES.items():
        make_tool(server=server, name=name, description=description)
    return server


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return make_encoder(tmp_path / "tiny")


@pytest.fixture
def in_force(tiny: Path, tmp_path: Path) -> Iterator[OnnxEncoder]:
    with encoder_in_force(onnx_setting(tiny), tmp_path / "rest.json"):
        found = encoders.find_encoder()
        assert isinstance(found, OnnxEncoder)
        yield found


@pytest.fixture
def server(tiny: Path) -> Iterator[EmbeddingsServer]:
    with running_embeddings_server(tiny) as running:
        running.encoder.open()
        yield running


@pytest.fixture
def endpoint(server: EmbeddingsServer, tmp_path: Path) -> Iterator[EmbeddingsServer]:
    with encoder_in_force(endpoint_setting(server), tmp_path / "rest.json"):
        yield server


def found(text: str) -> list[str]:
    outcome = search.search_catalog(query=text, ranker="bm25f", limit=5)
    names = dict(Tool.objects.values_list("pk", "name"))
    return [names[hit.id] for hit in outcome.hits]


def is_by_meaning() -> bool:
    return search.is_by_meaning()


def change_tool(name: str, description: str) -> None:
    tool = Tool.objects.get(name=name)
    tool.description = description
    tool.save(update_fields=["description"])
    tools.mark_changed([tool.pk])


class TestStoredVectors:
    def test_search_goes_by_words_until_the_vectors_are_there(
        self, catalog: Server, in_force: OnnxEncoder
    ) -> None:
        reindex.bring_up_to_date()
        assert not is_by_meaning()
        assert found("weather") == ["read_weather"]
        encoding.request_encoding()
        work()
        assert is_by_meaning()
        assert ToolVector.objects.count() == 3
        assert found("pay for weather and a meeting")[:3]

    def test_each_text_is_encoded_once(self, catalog: Server, endpoint: EmbeddingsServer) -> None:
        encoding.request_encoding()
        work()
        change_tool("pay_bill", "Pay an invoice.")
        encoding.request_encoding()
        work()
        encoding.request_if_behind()
        work()
        assert set(endpoint.texts.values()) == {1}
        assert len(endpoint.texts) == 4

    def test_changed_tool_is_found_by_words_at_once_and_has_its_meaning_later(
        self, catalog: Server, in_force: OnnxEncoder, index_folder: Path
    ) -> None:
        encoding.request_encoding()
        work()
        change_tool("pay_bill", "Sends a zeppelin.")
        reindex.bring_up_to_date()
        assert found("zeppelin") == ["pay_bill"]
        assert index.read_index_state(index_folder).without_vector == 1
        encoding.request_if_behind()
        work()
        assert index.read_index_state(index_folder).without_vector == 0
        assert is_by_meaning()

    def test_vectors_are_taken_over_without_a_new_store(
        self, catalog: Server, in_force: OnnxEncoder, index_folder: Path
    ) -> None:
        reindex.bring_up_to_date()
        before = generations.read_current(index_folder)
        encoding.request_encoding()
        work()
        after = generations.read_current(index_folder)
        assert after.store == before.store
        assert after.number > before.number
        reindex.bring_up_to_date()
        assert generations.read_current(index_folder) == after

    def test_progress_is_on_the_job_and_in_health(
        self, catalog: Server, in_force: OnnxEncoder, monkeypatch: pytest.MonkeyPatch, client: Client
    ) -> None:
        monkeypatch.setattr(encoding, "TEXTS_AT_ONCE", 1)
        job = jobs.request_job(kind=JobKind.ENCODE_TOOLS, subject=encoding.subject_of(in_force.name))
        seen: list[str] = []
        encode = in_force.encode

        def watched(texts: list[str]) -> Vectors:
            seen.append(client.get("/api/v1/health").json()["encoder"]["state"])
            return encode(texts)

        monkeypatch.setattr(in_force, "encode", watched)
        work()
        assert seen == [f"{done} of 3 tools have a vector" for done in range(3)]
        assert Job.objects.get(pk=job.pk).result == {"done": 3, "total": 3}
        assert client.get("/api/v1/health").json()["encoder"] == {
            "kind": "onnx",
            "state": "ok",
            "in_force": True,
            "done": 3,
            "total": 3,
            "resting": False,
            "last_failure": None,
            "queries_leave": False,
        }

    def test_long_work_is_many_jobs(
        self, catalog: Server, in_force: OnnxEncoder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(encoding, "TEXTS_AT_ONCE", 1)
        ticks = iter(range(1000))
        monkeypatch.setattr(encoding, "WORK_SECONDS", 1.5)
        set_clock(monkeypatch, encoding, monotonic=lambda: float(next(ticks)))
        encoding.request_encoding()
        work()
        monkeypatch.undo()
        done = Job.objects.filter(kind=JobKind.ENCODE_TOOLS, state=JobState.DONE)
        assert done.count() > 1
        assert ToolVector.objects.count() == 3

    def test_lost_hold_stores_nothing(
        self, catalog: Server, in_force: OnnxEncoder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        encode = in_force.encode

        def slow(texts: list[str]) -> Vectors:
            Job.objects.filter(kind=JobKind.ENCODE_TOOLS).update(attempts=5)
            return encode(texts)

        monkeypatch.setattr(in_force, "encode", slow)
        encoding.request_encoding()
        work()
        assert not ToolVector.objects.exists()

    def test_encoder_of_another_node_is_left_to_it(self, catalog: Server, in_force: OnnxEncoder) -> None:
        jobs.request_job(kind=JobKind.ENCODE_TOOLS, subject=encoding.subject_of("another"))
        work()
        assert not ToolVector.objects.exists()

    def test_new_encoder_replaces_the_old_one_in_the_background(
        self, catalog: Server, tmp_path: Path, index_folder: Path
    ) -> None:
        for folder in (make_encoder(tmp_path / "one"), make_encoder(tmp_path / "two", dimensions=24, seed=3)):
            with encoder_in_force(onnx_setting(folder), tmp_path / "rest.json"):
                assert not is_by_meaning()
                reindex.request_if_behind()
                encoding.request_if_behind()
                work()
                assert is_by_meaning()
                assert found("weather")[0] == "read_weather"
        assert EncoderState.objects.count() == 2
        assert ToolVector.objects.count() == 6
        reindex.bring_up_to_date()  # word vectors again
        assert index.read_index_state(index_folder).without_vector == 0

    def test_encoder_that_no_worker_has_is_told(self, catalog: Server, in_force: OnnxEncoder) -> None:
        assert encoders.read_encoder_status().state == "no worker has begun with it"

    def test_restored_versions_are_not_trusted(self, catalog: Server, in_force: OnnxEncoder) -> None:
        encoding.request_encoding()
        work()
        Tool.objects.filter(name="pay_bill").update(description="Another text, with a version as before.")
        encoding.look_again()
        encoding.request_if_behind()
        work()
        assert ToolVector.objects.count() == 4

    def test_word_vectors_are_not_kept(self, catalog: Server) -> None:
        encoding.request_encoding()
        encoding.request_if_behind()
        assert not Job.objects.filter(kind=JobKind.ENCODE_TOOLS).exists()

    def test_damaged_model_leaves_words(
        self, catalog: Server, tiny: Path, tmp_path: Path, client: Client
    ) -> None:
        (tiny / "model.onnx").write_bytes(b"junk")
        with encoder_in_force(onnx_setting(tiny), tmp_path / "rest.json"):
            encoding.request_encoding()
            work()
            assert found("weather") == ["read_weather"]
            parts = client.get("/api/v1/health")
        assert parts.status_code == 200
        assert parts.json()["encoder"]["state"] == "cannot be used"

    def test_folder_that_went_away_leaves_words(
        self, catalog: Server, tmp_path: Path, client: Client
    ) -> None:
        with encoder_in_force(onnx_setting(tmp_path / "nothing"), tmp_path / "rest.json"):
            encoding.request_encoding()
            reindex.bring_up_to_date()
            assert found("weather") == ["read_weather"]
            assert client.get("/api/v1/health").json()["encoder"]["state"] == "cannot be used"


class TestFollowing:
    def test_node_drops_vectors_that_are_made_anew(
        self, catalog: Server, endpoint: EmbeddingsServer, index_folder: Path
    ) -> None:
        encoding.request_encoding()
        work()
        follower = index_follower.Follower()
        follower.catch_up()
        before = index.read_index_state(index_folder)
        endpoint.behaviour = "other dimension"
        encoding.forget_vectors()
        assert follower.catch_up()
        assert index.read_index_state(index_folder).without_vector == 3
        assert not is_by_meaning()
        work()
        follower.catch_up()
        after = index.read_index_state(index_folder)
        assert (after.without_vector, after.edition) == (0, before.edition + 1)
        assert is_by_meaning()

    def test_node_takes_over_vectors_that_another_made(
        self, catalog: Server, in_force: OnnxEncoder, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        follower = index_follower.Follower()
        follower.catch_up()
        with django_assert_num_queries(2):
            assert not follower.catch_up()
        encoding.request_encoding()
        job = Job.objects.get(kind=JobKind.ENCODE_TOOLS)
        jobs.run_job(job_id=job.pk, holder="test", handlers={JobKind.ENCODE_TOOLS: encoding.run_encoding})
        assert not is_by_meaning()
        assert follower.catch_up()
        assert is_by_meaning()
        assert not follower.catch_up()


class TestEndpoint:
    @pytest.mark.parametrize(
        "behaviour", ["down", "gone", "garbage", "short", "misnumbered", "infinite", "zero", "mixed"]
    )
    def test_failure_is_told_and_heals(
        self, catalog: Server, endpoint: EmbeddingsServer, behaviour: str, client: Client
    ) -> None:
        endpoint.behaviour = behaviour
        encoding.request_encoding()
        work()
        assert not ToolVector.objects.exists()
        assert found("weather") == ["read_weather"]
        answer = client.get("/api/v1/health")
        assert answer.status_code == 200
        assert answer.json()["encoder"]["state"] == "does not answer"
        job = Job.objects.get(kind=JobKind.ENCODE_TOOLS)
        assert (job.state, job.run_after > timezone.now()) == (JobState.WAITING, True)
        endpoint.behaviour = "fine"
        job.run_after = timezone.now()
        job.save(update_fields=["run_after"])
        jobs.run_job(job_id=job.pk, holder="test", handlers={JobKind.ENCODE_TOOLS: encoding.run_encoding})
        work()
        assert is_by_meaning()
        assert client.get("/api/v1/health").json()["encoder"]["state"] == "ok"

    def test_attempt_that_stores_nothing_has_no_index_written(
        self, catalog: Server, endpoint: EmbeddingsServer, index_folder: Path
    ) -> None:
        encoding.request_encoding()
        work()
        change_tool("pay_bill", "Pay an invoice.")
        reindex.bring_up_to_date()
        before = generations.read_current(index_folder)
        endpoint.behaviour = "down"
        encoding.request_encoding()
        work()
        reindex.bring_up_to_date()
        assert generations.read_current(index_folder) == before

    def test_problem_goes_with_the_tool_that_met_it(
        self, catalog: Server, endpoint: EmbeddingsServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        encoding.request_encoding()
        work()
        added = make_tool(server=catalog, name="read_storm")
        endpoint.behaviour = "down"
        encoding.request_encoding()
        work()
        added.delete()
        assert encoders.read_encoder_status().problem
        Job.objects.all().delete()
        monkeypatch.setattr(encoding, "PAUSE_AFTER_FAILURE", timedelta(0))
        encoding.request_if_behind()
        work()
        assert encoders.read_encoder_status().problem == ""
        encoding.request_if_behind()
        assert not Job.objects.open().exists()

    def test_gone_in_the_middle_it_goes_on_where_it_stopped(
        self, catalog: Server, endpoint: EmbeddingsServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(encoding, "TEXTS_AT_ONCE", 1)
        endpoint.fails_after = 2
        encoding.request_encoding()
        work()
        assert ToolVector.objects.count() == 2
        assert found("weather") == ["read_weather"]
        endpoint.fails_after = None
        Job.objects.filter(kind=JobKind.ENCODE_TOOLS).update(attempts=0)
        Job.objects.update(run_after=timezone.now())
        work()
        assert is_by_meaning()
        assert set(endpoint.texts.values()) == {1}

    def test_other_dimension_is_named_and_stores_nothing(
        self, catalog: Server, endpoint: EmbeddingsServer
    ) -> None:
        encoding.request_encoding()
        work()
        change_tool("pay_bill", "Pay an invoice.")
        reindex.bring_up_to_date()
        endpoint.behaviour = "other dimension"
        encoding.request_encoding()
        work()
        status = encoders.read_encoder_status()
        assert "tiny-1 at 127.0.0.1" in status.problem
        assert "17 dimensions, those stored before 16" in status.problem
        assert ToolVector.objects.count() == 3
        assert is_by_meaning() is False  # one of three has no vector
        assert found("weather")[0] == "read_weather"
        encoding.forget_vectors()
        Job.objects.update(run_after=timezone.now(), attempts=0)
        work()
        assert EncoderState.objects.get().dimensions == 17
        assert is_by_meaning()

    @pytest.mark.parametrize("behaviour", ["slow", "down", "garbage", "other dimension"])
    def test_query_that_fails_is_searched_by_words_and_the_next_does_not_wait(
        self, catalog: Server, endpoint: EmbeddingsServer, behaviour: str
    ) -> None:
        encoding.request_encoding()
        work()
        endpoint.behaviour = behaviour
        asked = endpoint.requests
        assert found("weather now")[0] == "read_weather"
        assert found("weather later")[0] == "read_weather"
        assert endpoint.requests == asked + 1
        status = encoders.read_encoder_status()
        assert (status.is_resting, status.failures, status.host) == (True, 1, "127.0.0.1")
        assert health.read_health().can_serve
        endpoint.behaviour = "fine"
        end_rest()
        assert found("weather later")[0] == "read_weather"
        assert encoders.read_encoder_status().problem == ""

    def test_admins_read_where_queries_go(
        self, catalog: Server, endpoint: EmbeddingsServer, admin_client: Client
    ) -> None:
        page = admin_client.get("/system/").content.decode()
        assert "Texts of tools and of queries are sent to" in page
        assert "canary" not in page


class TestRetention:
    def test_vectors_that_nobody_needs_go_after_some_days(
        self, catalog: Server, in_force: OnnxEncoder
    ) -> None:
        encoding.request_encoding()
        work()
        change_tool("pay_bill", "Pay an invoice.")
        encoding.request_encoding()
        work()
        now = timezone.now()
        vector_retention.prune(now=now)
        assert ToolVector.objects.filter(unused_since=now).count() == 1
        vector_retention.prune(now=now + timedelta(days=6))
        assert ToolVector.objects.count() == 4
        vector_retention.prune(now=now + timedelta(days=6, hours=23))
        change_tool("pay_bill", NAMES["pay_bill"])
        EncoderState.objects.update(used_at=now + timedelta(days=7))
        vector_retention.prune(now=now + timedelta(days=8))
        assert ToolVector.objects.filter(unused_since=None).count() == 3
        assert ToolVector.objects.count() == 4  # the text that is back, and the other since today
        EncoderState.objects.update(used_at=now + timedelta(days=16))
        vector_retention.prune(now=now + timedelta(days=16))
        assert ToolVector.objects.count() == 3

    def test_vectors_of_the_encoder_in_force_stay_after_a_long_stop(
        self, catalog: Server, in_force: OnnxEncoder
    ) -> None:
        encoding.request_encoding()
        work()
        vector_retention.prune(now=timezone.now() + timedelta(days=8))
        assert ToolVector.objects.count() == 3

    def test_vectors_of_an_encoder_that_no_node_uses_go(self, catalog: Server, in_force: OnnxEncoder) -> None:
        encoding.request_encoding()
        work()
        EncoderState.objects.update(name="another")
        vector_retention.prune(now=timezone.now() + timedelta(days=8))
        assert not EncoderState.objects.exists()
        assert not ToolVector.objects.exists()
