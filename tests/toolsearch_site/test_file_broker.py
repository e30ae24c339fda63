"""The embedded broker hands over whole messages, in order, also while others write."""

import multiprocessing
from pathlib import Path
from typing import Any

import pytest
from kombu.connection import Connection

MESSAGES = 300
WRITERS = 4


def connect(folder: Path) -> Any:
    (folder / "control").mkdir(parents=True, exist_ok=True)
    options = {"data_folder_in": str(folder), "data_folder_out": str(folder)}
    return Connection(  # type: ignore[no-untyped-call]
        "filesystem://localhost",
        transport="toolsearch_site.file_broker:Transport",
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
        assert settings.CELERY_BROKER_TRANSPORT == "toolsearch_site.file_broker:Transport"
    else:
        assert not hasattr(settings, "CELERY_BROKER_TRANSPORT")


def test_message_of_another_queue_stays(tmp_path: Path) -> None:
    with connect(tmp_path) as connection:
        connection.SimpleQueue("refresh").put({"writer": 1, "number": 7})
        work = connection.SimpleQueue("work")
        with pytest.raises(work.Empty):
            work.get(timeout=0.3)
        assert take(connection.SimpleQueue("refresh")) == (1, 7)
