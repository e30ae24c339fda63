"""An endpoint's answer is believed only where it is whole, and waited for only so long."""

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import wait
from pathlib import Path
from queue import Queue
from threading import Thread

import numpy as np
import pytest

from catalog.domain.embeddings import EndpointFailure, read_answer
from catalog.upstream import embeddings
from catalog.upstream.embeddings import EmbeddingsClient
from tests.harness.embeddings_server import KEY, EmbeddingsServer, running_embeddings_server
from tests.harness.nodes import find_free_port
from tests.harness.tiny_encoder import make_encoder

TEXTS = ["rain", "send an email", "file"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddingsServer]:
    with running_embeddings_server(make_encoder(tmp_path / "tiny")) as running:
        running.encoder.open()
        yield running


@pytest.fixture
def client(server: EmbeddingsServer) -> EmbeddingsClient:
    return EmbeddingsClient(server.url, "tiny-1", KEY)


def test_vectors_come_in_the_order_of_the_texts(server: EmbeddingsServer, client: EmbeddingsClient) -> None:
    found = np.array(client.embed(TEXTS, 10.0))
    np.testing.assert_allclose(found, server.encoder.encode(TEXTS) * 3, atol=1e-4)
    assert (server.keys, server.models) == ({f"Bearer {KEY}"}, {"tiny-1"})


def test_no_key_is_sent_where_there_is_none(server: EmbeddingsServer) -> None:
    EmbeddingsClient(server.url, "tiny-1", "").embed(["rain"], 10.0)
    assert server.keys == {""}


@pytest.mark.parametrize(
    ("behaviour", "complaint"),
    [
        ("down", "HTTP status 500"),
        ("redirect", "HTTP status 307"),
        ("gone", "cannot be reached"),
        ("garbage", "not JSON"),
        ("short", "asked for 3 vectors and gave 2"),
        ("misnumbered", "not numbered"),
        ("words", "not a list of numbers"),
        ("mixed", "different dimensions"),
        ("large", "more than 4 MB"),
    ],
)
def test_failures_are_told(
    server: EmbeddingsServer, client: EmbeddingsClient, behaviour: str, complaint: str
) -> None:
    server.behaviour = behaviour
    with pytest.raises(EndpointFailure, match=complaint) as failure:
        client.embed(TEXTS, 10.0)
    assert KEY not in str(failure.value)
    assert TEXTS[1] not in str(failure.value)
    server.behaviour = "fine"
    assert len(client.embed(TEXTS, 10.0)) == 3


@pytest.mark.parametrize("behaviour", ["slow", "drip"])
def test_the_time_limit_is_of_the_whole(
    server: EmbeddingsServer, client: EmbeddingsClient, behaviour: str
) -> None:
    server.behaviour = behaviour
    started = time.monotonic()
    with pytest.raises(EndpointFailure, match="did not answer"):
        client.embed(TEXTS, 0.3)
    assert time.monotonic() - started < 0.6


def test_requests_that_are_fed_byte_by_byte_leave_their_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "GRACE_SECONDS", 0.1)
    ended: Queue[bool] = Queue()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=_drip_headers, args=(listener, ended), daemon=True).start()
        client = EmbeddingsClient(f"http://127.0.0.1:{listener.getsockname()[1]}/v1/embeddings", "tiny-1", "")
        with pytest.raises(EndpointFailure, match="did not answer"):
            client.embed(TEXTS, 0.2)
        stuck = next(iter(client._overdue))
        assert wait([stuck], timeout=0.2).not_done
        with pytest.raises(EndpointFailure, match="did not answer"):
            client.embed(TEXTS, 0.2)
        assert wait([stuck], timeout=5).done
        assert ended.get(timeout=5)
        client._overdue = dict.fromkeys(client._overdue, 0.0)
        client._end_stuck()


def _drip_headers(listener: socket.socket, ended: "Queue[bool]") -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        Thread(target=_drip, args=(connection, ended), daemon=True).start()


def _drip(connection: socket.socket, ended: "Queue[bool]") -> None:
    with connection:
        try:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
            while True:
                connection.sendall(b"a")
                time.sleep(0.02)
        except OSError:
            ended.put(True)


@pytest.mark.parametrize("host", ["a..example.com", "a" * 64, "a\udcff.example.com"])
def test_host_that_can_be_none_is_a_failure(host: str) -> None:
    with pytest.raises(EndpointFailure, match="cannot be reached"):
        EmbeddingsClient(f"http://{host}/v1/embeddings", "tiny-1", "").embed(TEXTS, 5.0)


def test_number_past_every_float_is_a_failure() -> None:
    body = b'{"data": [{"embedding": [1, 1' + b"0" * 400 + b"]}]}"
    with pytest.raises(EndpointFailure, match="too large"):
        read_answer(body, 1)


def test_nobody_there_is_told() -> None:
    client = EmbeddingsClient(f"http://127.0.0.1:{find_free_port()}/embeddings", "tiny-1", "")
    with pytest.raises(EndpointFailure, match="cannot be reached"):
        client.embed(TEXTS, 10.0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"data": {}}',
        b'{"data": [1]}',
        b'{"data": [{"index": true, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0}]}',
        b'{"data": [{"index": 0, "embedding": [1]}]}',
        b'{"data": [{"index": 0, "embedding": [true, false]}]}',
        b'{"data": [{"index": 0, "embedding": "AAAA"}]}',
        json.dumps({"data": [{"index": 0, "embedding": [0.5] * 20_000}]}).encode(),
        b"[" * 100_000,
    ],
)
def test_answers_of_another_shape_are_refused(body: bytes) -> None:
    with pytest.raises(EndpointFailure):
        read_answer(body, 1)
