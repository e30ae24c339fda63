"""Computes the vectors of tools for search by meaning: each text once for all nodes, kept by its digest.

A job works for a while, commits batch after batch, and asks for another where something is left: a worker
that is killed loses one batch, and other jobs are not held up for long.
"""

import hashlib
import time
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from catalog.models import EncoderState, Job, ToolVector
from catalog.models.jobs import JobKind
from catalog.models.tools import ToolQuerySet
from catalog.search.errors import UnusableEncoder
from catalog.search.meaning import Encoder, Vectors, text_to_encode
from catalog.search.stored_vectors import digest_text, pack_vectors
from catalog.selectors.documents import documents_of, searchable_tools, searched_version
from catalog.selectors.encoder import find_kept_encoder
from catalog.services import jobs, reindex
from catalog.services.batches import batches

TEXTS_AT_ONCE = 32
LOOK_UP_AT_ONCE = 500
WORK_SECONDS = 60.0
# After the last attempt of a job failed.
PAUSE_AFTER_FAILURE = timedelta(seconds=60)
NOTE_USE_EVERY = timedelta(hours=1)


def request_encoding() -> None:
    """Ask for the vectors of what has changed. A burst of changes is one job."""
    if encoder := find_kept_encoder():
        jobs.request_job(kind=JobKind.ENCODE_TOOLS, subject=subject_of(encoder.name))


def request_if_behind() -> None:
    """Costs two reads, and none for word vectors."""
    encoder = find_kept_encoder()
    if encoder is None:
        return
    now = timezone.now()
    state = _open_state(encoder.name)
    if now - state.used_at > NOTE_USE_EVERY:
        EncoderState.objects.filter(pk=state.pk).update(used_at=now)
    if state.problem_at is not None and now - state.problem_at < PAUSE_AFTER_FAILURE:
        return
    # A problem is looked at again too, although the tool that met it may be gone.
    if state.version != searched_version() or state.problem_at is not None:
        jobs.ensure_job(kind=JobKind.ENCODE_TOOLS, subject=subject_of(encoder.name))


def subject_of(name: str) -> int:
    """A job's subject: nodes with different encoders have different jobs."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")


def run_encoding(job: Job) -> None:
    """Does nothing for the encoder of another node. Raises UnusableEncoder where ours fails: the job is tried
    again then, later each time.
    """
    encoder = find_kept_encoder()
    if encoder is None or job.subject != subject_of(encoder.name):
        return
    state = _open_state(encoder.name)
    stored: list[str] = []
    is_complete: bool | None = None
    try:
        is_complete = _encode_missing(job, encoder, state, stored)
    except UnusableEncoder as failure:
        _states(state).update(problem=str(failure), problem_at=timezone.now())
        raise
    finally:
        # Also after a failure, for what was stored before it, but not where nothing was: each attempt would
        # have every index written anew. Nodes with indexes of their own see the number.
        if stored or is_complete is not None:
            _states(state).update(number=F("number") + 1)
            reindex.request_update()
    if not is_complete:
        jobs.request_job(kind=JobKind.ENCODE_TOOLS, subject=job.subject)


def look_again() -> None:
    """Compare all tools with the vectors there are: after a restore, versions may repeat."""
    EncoderState.objects.update(version=0)


def forget_vectors() -> None:
    """Have every tool encoded again by the encoder in force: after the model behind an endpoint changed."""
    encoder = find_kept_encoder()
    if encoder is None:
        return
    states = EncoderState.objects.filter(name=encoder.name)
    with transaction.atomic():
        states.update(
            edition=F("edition") + 1,
            number=F("number") + 1,
            dimensions=0,
            version=0,
            done=0,
            problem="",
            problem_at=None,
        )
        ToolVector.objects.filter(encoder__in=states).delete()
    request_encoding()


def _encode_missing(job: Job, encoder: Encoder, state: EncoderState, stored: list[str]) -> bool:
    """False where the time was up before all was done. `stored` gets the digests of what was stored."""
    stop_at = time.monotonic() + WORK_SECONDS
    version = searched_version()
    missing = _find_missing(state, _find_changed(state, version))
    total = searchable_tools().count()
    left = len(missing)
    _states(state).update(done=max(0, total - left), total=total)
    for batch in batches(list(missing), TEXTS_AT_ONCE):
        if time.monotonic() > stop_at:
            return False
        vectors = encoder.encode([missing[digest] for digest in batch])
        left -= len(batch)
        _store(job, state, batch, vectors, done=max(0, total - left), total=total)
        stored += batch
    _states(state).update(version=version, done=total, total=total, problem="", problem_at=None)
    return True


def _find_changed(state: EncoderState, version: int) -> ToolQuerySet:
    """All of them where the versions are of another database, or the newest tools were deleted."""
    tools = searchable_tools()
    return tools.filter(version__gt=state.version) if 0 < state.version <= version else tools


def _find_missing(state: EncoderState, tools: ToolQuerySet) -> dict[str, str]:
    """Texts without a vector, by digest."""
    texts = {digest_text(text): text for text in map(text_to_encode, documents_of(tools))}
    for batch in batches(list(texts), LOOK_UP_AT_ONCE):
        for known in state.vectors.filter(digest__in=batch).values_list("digest", flat=True):
            del texts[known]
    return texts


def _store(
    job: Job, state: EncoderState, digests: Sequence[str], vectors: Vectors, *, done: int, total: int
) -> None:
    """Raises LostHold where another worker took the job over, UnusableEncoder for other dimensions than those
    stored before.
    """
    dimensions = vectors.shape[1]
    rows = [
        ToolVector(encoder=state, digest=digest, vector=packed)
        for digest, packed in zip(digests, pack_vectors(vectors), strict=True)
    ]
    with transaction.atomic():
        jobs.store_result(job, {"done": done, "total": total})
        fitting = _states(state).filter(edition=state.edition, dimensions__in=[0, dimensions])
        if not fitting.update(dimensions=dimensions, done=done, total=total, problem="", problem_at=None):
            edition, stored = _states(state).values_list("edition", "dimensions").get()
            if edition != state.edition:
                raise jobs.LostHold("all vectors are made anew meanwhile")
            raise UnusableEncoder(
                f"{state.name}: its vectors have {dimensions} dimensions, those stored before {stored}"
            )
        ToolVector.objects.bulk_create(rows, ignore_conflicts=True)


def _states(state: EncoderState) -> "QuerySet[EncoderState]":
    return EncoderState.objects.filter(pk=state.pk)


def _open_state(name: str) -> EncoderState:
    found = EncoderState.objects.filter(name=name).first()
    if found is None:
        found, _ = EncoderState.objects.get_or_create(name=name, defaults={"used_at": timezone.now()})
    return found
