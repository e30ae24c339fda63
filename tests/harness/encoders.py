"""Settings of encoders for tests, and what a worker does for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.test import override_settings

from catalog.domain.encoder_setting import EncoderSetting
from catalog.models import Job
from catalog.models.jobs import JobKind
from catalog.search.endpoint_encoder import EndpointEncoder
from catalog.selectors import encoder, search
from catalog.services import jobs
from catalog.tasks import HANDLERS
from tests.harness.embeddings_server import KEY, EmbeddingsServer


@contextmanager
def encoder_in_force(setting: EncoderSetting, rest_file: Path) -> Iterator[None]:
    """As after a restart with this setting."""
    with override_settings(ENCODER=setting, ENCODER_REST_FILE=rest_file):
        _forget()
        try:
            yield
        finally:
            _forget()


def _forget() -> None:
    encoder._open.cache_clear()
    search._open_engine.cache_clear()


def onnx_setting(folder: Path) -> EncoderSetting:
    return EncoderSetting(f"onnx:{folder}")


def endpoint_setting(server: EmbeddingsServer, model: str = "tiny-1") -> EncoderSetting:
    return EncoderSetting(server.url, model=model, key=KEY)


def end_rest() -> None:
    """As if the endpoint had rested for long enough."""
    found = encoder.find_encoder()
    assert isinstance(found, EndpointEncoder)
    Path(settings.ENCODER_REST_FILE).unlink(missing_ok=True)
    found.rest._stamp = 0
    found.rest._known = type(found.rest._known)()


def work() -> None:
    """Run what waits, as the workers do, until nothing does."""
    for _ in range(20):
        waiting = Job.objects.filter(
            kind__in=[JobKind.ENCODE_TOOLS, JobKind.UPDATE_INDEX], state="waiting", attempts=0
        )
        found = list(waiting.values_list("pk", flat=True))
        if not found:
            return
        for job_id in found:
            jobs.run_job(job_id=job_id, holder="test", handlers=HANDLERS)
    raise AssertionError("jobs ask for each other without end")
