"""The embedded broker hands over whole messages, in order, also while others write."""

import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu.connection import Connection

MESSAGES = 300
WRITERS = 4
MESSAGE = {"body": "e30=", "properties": {"delivery_tag": "a", "body_encoding": "base64"}}
NO_MESSAGES = [
    *("null", "7", '"text"', "[]", "{}", '{"properties": null}', '{"properties": {}}'),
    '{"properties": {"delivery_tag": []}}',
    '{"body": 7, "properties": {"delivery_tag": "a", "body_encoding": "base64"}}',
    '{"body": "x", "properties": {"delivery_tag": "a", "body_encoding": "unheard-of"}}',
]


def connect(folder: Path) -> Any:
    (folder / "control").mkdir(parents=True, exist_ok=True)
    options = {"data_folder_in": str(folder), "data_folder_out": str(folder)}
    return Connection(  # type: ignore[no-untyped-call]
        "filesystem://localhost",
        transport="toolsearch_site.cluster.file_broker:FileTransport",
        transport_options={**options, "control_folder": str(folder / "control")},
    )


def write(folder: Path, writer: int) -> None:
    with connect(folder) as connection:
        queue = connection.SimpleQueue("work")
        for number in range(MESSAGES):
            queue.put({"writer": writer, "number": number, "text": "x" * 20_000})


def take(queue: Any) -> tuple[int, int]:
    message = queue.get(timeout=20)
    message.ack()
    return message.payload["writer"], message.payload["number"]


@pytest.mark.slow
def test_reader_beside_writers_gets_every_message_whole(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write, args=(tmp_path, number)) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    with connect(tmp_path) as connection:
        queue = connection.SimpleQueue("work")
        taken = [take(queue) for _ in range(WRITERS * MESSAGES)]
    for writer in writers:
        writer.join()
    by_writer = [[number for who, number in taken if who == writer] for writer in range(WRITERS)]
    assert by_writer == [list(range(MESSAGES))] * WRITERS


def test_is_what_an_instance_without_a_broker_server_uses(settings: Any) -> None:
    if settings.CELERY_BROKER_URL.startswith("filesystem"):
        assert settings.CELERY_BROKER_TRANSPORT == "toolsearch_site.cluster.file_broker:FileTransport"
    else:
        assert not hasattr(settings, "CELERY_BROKER_TRANSPORT")


def test_message_of_another_queue_stays(tmp_path: Path) -> None:
    with connect(tmp_path) as connection:
        connection.SimpleQueue("refresh").put({"writer": 1, "number": 7})
        work = connection.SimpleQueue("work")
        with pytest.raises(work.Empty):
            work.get(timeout=0.3)
        assert take(connection.SimpleQueue("refresh")) == (1, 7)


@contextmanager
def one_message(folder: Path) -> Iterator[Any]:
    with connect(folder) as connection:
        channel = connection.channel()
        channel._put("work", MESSAGE)
        yield channel


def test_message_goes_through_no_folder_that_others_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    with one_message(tmp_path) as channel:
        assert channel._get("work") == MESSAGE


@pytest.mark.parametrize("text", ["", '{"body": "e3', "\0\0", "\xff", *NO_MESSAGES])
def test_file_that_lost_its_text_is_dropped_and_told(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    lost = tmp_path / f"{0:020}_lost.work.msg"
    lost.write_text(text, encoding="latin-1")
    with one_message(tmp_path) as channel:
        assert channel._get("work") == MESSAGE
    assert not lost.exists()
    assert lost.name in caplog.text


def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("{}")
    (tmp_path / f"{0:020}_folder.work.msg").mkdir()
    (tmp_path / f"{0:020}_link.work.msg").symlink_to(outside)
    os.mkfifo(tmp_path / f"{0:020}_pipe.work.msg")
    with one_message(tmp_path) as channel:
        assert channel._get("work") == MESSAGE
    assert outside.read_text() == "{}"


def take_all(folder: Path, taken: Any) -> None:
    with connect(folder) as connection:
        channel, numbers = connection.channel(), []
        while channel._size("work"):
            try:
                numbers.append(channel._get("work")["number"])
            except Empty:
                break
    taken.put(numbers)


@pytest.mark.slow
def test_each_message_goes_to_one_of_many_workers(tmp_path: Path) -> None:
    with connect(tmp_path) as connection:
        for number in range(MESSAGES):
            connection.default_channel._put("work", {**MESSAGE, "number": number})
    context = multiprocessing.get_context("spawn")
    taken = context.Queue()
    workers = [context.Process(target=take_all, args=(tmp_path, taken)) for _ in range(WRITERS)]
    for worker in workers:
        worker.start()
    numbers = [number for _ in workers for number in taken.get(timeout=20)]
    for worker in workers:
        worker.join()
    assert sorted(numbers) == list(range(MESSAGES))
