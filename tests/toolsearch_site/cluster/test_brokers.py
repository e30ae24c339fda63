"""A real worker on a real broker: what is asked for is done, and what is lost on the way comes again."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from celery import Celery
from kombu.connection import Connection

from tests.harness.instance import ROOT, own_database, wait_for
from tests.harness.nodes import Redis

pytestmark = pytest.mark.slow

SECRET_KEY = "long and random " * 3
WORKER = ("--queues", "celery,refresh", "--pool", "prefork", "--concurrency", "1", "--loglevel", "INFO")
WITHIN_SECONDS = 60
ASK_FOR_JOBS = """
import time
from catalog import tasks
from catalog.models import Job
from catalog.models.jobs import JobKind
from catalog.services import jobs

def show_end(job):
    end = time.monotonic() + 60
    while Job.objects.open().filter(pk=job.pk).exists() and time.monotonic() < end:
        time.sleep(0.1)
    job.refresh_from_db()
    print(job.state, job.attempts, job.held_by or "-", job.error, sep="|")

quick = jobs.request_job(kind=JobKind.DECIDE)
tasks.wake_workers()
show_end(quick)
slow = jobs.request_job(kind=JobKind.RUN_SAVED_QUERIES, subject=4711)
Job.objects.filter(pk=slow.pk).update(max_attempts=1)
tasks.run_job.apply_async((slow.pk,), soft_time_limit=1)
show_end(slow)
"""


@dataclass(frozen=True, slots=True)
class Site:
    """A worker on a broker of its own, and the way to send it something."""

    url: str
    environment: dict[str, str]
    log: Path

    def send(self, task: str, *arguments: str, queue: str = "celery") -> None:
        with Celery(broker=self.url, set_as_current=False) as sender:
            sender.send_task(task, arguments, queue=queue)

    def count_waiting(self) -> int:
        """Messages on the broker that no worker has taken."""
        return sum(self._count(queue) for queue in ("celery", "refresh"))

    def _count(self, queue: str) -> int:
        with Connection(self.url) as connection:  # type: ignore[no-untyped-call]
            try:
                return int(connection.channel().queue_declare(queue, passive=True).message_count)
            except connection.channel_errors:  # on Redis an empty queue is none
                return 0

    def count_taken_in_advance(self) -> int:
        with Celery(broker=self.url, set_as_current=False) as asker:
            [taken] = asker.control.inspect(timeout=5, limit=1).reserved().values()
        return len(taken)

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        ended = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


@contextmanager
def own_redis(folder: Path) -> Iterator[str]:
    if shutil.which("redis-server") is None:
        pytest.skip("Redis is absent")
    server = Redis(folder / "redis")
    server.start()
    try:
        yield server.url(0)
    finally:
        server.kill()


@contextmanager
def own_rabbit(folder: Path) -> Iterator[str]:
    """A virtual host of the server that runs here: queues of that name are nobody else's."""
    name = f"toolsearch-{os.getpid()}"
    if not (
        _control("add_vhost", name) and _control("set_permissions", "-p", name, "guest", ".*", ".*", ".*")
    ):
        pytest.skip("RabbitMQ is absent")
    try:
        yield f"amqp://guest:guest@127.0.0.1:5672/{name}"
    finally:
        _control("delete_vhost", name)


def _control(*arguments: str) -> bool:
    """Ask the server for something, once more where it did not answer in time.

    `rabbitmqctl` is a script around others: killed, it leaves them, and they would keep a pipe open for ever.
    """
    if shutil.which("rabbitmqctl") is None:
        return False
    command = ["rabbitmqctl", "-q", "--timeout", "30", *arguments]
    for _ in range(2):
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        ) as asked:
            try:
                return asked.wait(timeout=60) == 0
            except subprocess.TimeoutExpired:
                os.killpg(asked.pid, signal.SIGKILL)
    raise TimeoutError(f"rabbitmqctl {arguments[0]} does not end")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """With tables, in a database of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    data = tmp_path_factory.mktemp("data")
    with own_database() as database_url:
        made = {**kept, "TOOLSEARCH_DATA": str(data), "SECRET_KEY": SECRET_KEY}
        if database_url:
            made["DATABASE_URL"] = database_url
        subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=ROOT, env=made, check=True)
        yield made


BROKERS = {"redis": own_redis, "amqp": own_rabbit}


@pytest.fixture(scope="module", params=list(BROKERS))
def site(
    request: pytest.FixtureRequest, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp(request.param)
    with BROKERS[request.param](folder) as url, pytest.MonkeyPatch.context() as here:
        here.setenv("CELERY_BROKER_URL", url)  # Celery believes it before an app's own argument
        made = Site(url, {**environment, "CELERY_BROKER_URL": url}, folder / "worker.log")
        with running_worker(made):
            yield made


@contextmanager
def running_worker(site: Site) -> Iterator[None]:
    command = [
        sys.executable,
        "-m",
        "celery",
        "--app",
        "tests.toolsearch_site.cluster.odd_worker",
        "worker",
        *WORKER,
    ]
    with site.log.open("ab") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=site.environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        wait_for(lambda: "ready." in site.log.read_text(), within_seconds=WITHIN_SECONDS)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()


def lines_of(diary: Path) -> list[str]:
    return diary.read_text().splitlines() if diary.exists() else []


def test_job_is_done_and_one_that_takes_too_long_says_so(site: Site) -> None:
    done, slow = site.manage("shell", "-v", "0", "-c", ASK_FOR_JOBS).splitlines()
    assert done == "done|1|-|"
    assert slow == "failed|1|-|TookTooLong: it was told to end because it took too long"


def test_task_whose_process_was_killed_is_delivered_again(site: Site, tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    site.send("odd.die_once", str(diary))
    wait_for(lambda: len(lines_of(diary)) == 2, within_seconds=WITHIN_SECONDS)
    first, second = lines_of(diary)
    assert first != second


def test_worker_that_is_busy_takes_no_message_in_advance(site: Site, tmp_path: Path) -> None:
    diary, gate = tmp_path / "diary", tmp_path / "gate"
    for queue in ("refresh", "celery", "refresh"):
        site.send("odd.wait_for", str(diary), str(gate), queue=queue)
    try:
        wait_for(lambda: lines_of(diary), within_seconds=WITHIN_SECONDS)
        assert site.count_taken_in_advance() == 0
        assert len(lines_of(diary)) == 1
        assert site.count_waiting() == 2
    finally:
        gate.touch()
    wait_for(lambda: len(lines_of(diary)) == 3, within_seconds=WITHIN_SECONDS)
    assert site.count_waiting() == 0
