"""Gateway processes that write at the same time: limits hold, nothing is lost, nobody waits for ever."""

import uuid
from datetime import timedelta
from functools import partial

import pytest
from django.db import transaction
from django.utils import timezone

from catalog.access.actors import SYSTEM
from catalog.domain.limits import GATEWAY_CLIENTS_OF_A_KEY, KEPT_RESULTS_OF_A_KEY
from catalog.models import ApiKey
from catalog.services.servers import delete_server
from sessions.models import Call, GatewayClient, GatewayProcess, KeptResult, OpenLease
from sessions.services import calls, gateway_processes, kept_results
from sessions.services.calls import Batch, CallBuffer
from sessions.services.gateway_processes import LeaseRow
from tests.harness.rows import make_key, make_server
from tests.sessions.services.test_calls import make_pending
from tests.sessions.test_concurrency import at_once

pytestmark = [pytest.mark.concurrent, pytest.mark.django_db(transaction=True, serialized_rollback=True)]

NOW = timezone.now()


def test_limit_of_kept_results_holds() -> None:
    key = make_key()
    for _ in range(KEPT_RESULTS_OF_A_KEY - 2):
        kept_results.keep_result(key_id=key.pk, text="a")
    for _ in range(3):
        handles = at_once(lambda _: kept_results.keep_result(key_id=key.pk, text="b"), range(6))
        assert None not in handles
        assert KeptResult.objects.filter(key=key).count() == KEPT_RESULTS_OF_A_KEY
        assert KeptResult.objects.filter(pk__in=handles).count() == 6


def test_batches_of_several_processes_lose_nothing() -> None:
    keys = [make_key() for _ in range(4)]

    def write(number: int) -> None:
        """As its own process: each meets the same keys and clients in another order."""
        buffer = CallBuffer()
        for turn in range(20):
            key = keys[(turn * (number + 1)) % len(keys)]
            buffer.enqueue_call(make_pending(key_id=key.pk))
            for name in (f"own-{number}-{turn}", "shared"):
                buffer.enqueue_client(
                    key_id=key.pk,
                    name=name,
                    version="1",
                    revision="r",
                    exposure="search",
                    at=NOW + timedelta(seconds=turn),
                    is_call=bool(turn % 2),
                )
        buffer.flush()

    at_once(write, range(5))
    assert Call.objects.count() == 100
    for key in keys:
        assert GatewayClient.objects.filter(key=key).count() <= GATEWAY_CLIENTS_OF_A_KEY
        assert GatewayClient.objects.filter(key=key, name="shared").count() <= 1


def test_calls_beside_the_end_of_their_key_are_kept() -> None:
    for _ in range(5):
        Call.objects.all().delete()
        key = make_key()
        batch = Batch(calls=[make_pending(key_id=key.pk) for _ in range(20)])
        at_once(lambda work: work(), [partial(calls._buffer._write, batch), partial(delete_locked, key.pk)])
        assert Call.objects.filter(key=None).count() == 20


def delete_locked(key_id: int) -> None:
    with transaction.atomic():
        ApiKey.objects.select_for_update().get(pk=key_id).delete()


def test_report_beside_the_end_of_a_server_and_of_its_process() -> None:
    for number in range(8):
        server = make_server()
        lease = LeaseRow(
            id=uuid.uuid4(), server_id=server.pk, key_id=make_key().pk, opened_at=NOW, last_used_at=NOW
        )
        report = partial(
            gateway_processes.report,
            process=f"node:{number}",
            started_at=NOW,
            leases=[lease],
            upstreams=[],
            open_streams=0,
            open_calls=0,
        )
        at_once(lambda work: work(), [report, partial(delete_server, server=server, actor=SYSTEM)])
        report()
        assert not OpenLease.objects.exists()
        assert GatewayProcess.objects.filter(pk=f"node:{number}").exists()
