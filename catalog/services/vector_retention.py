"""Forgets vectors that nobody needs: of encoders no node has in force, and of texts no tool has any more."""

from datetime import datetime, timedelta

from django.db.models import Q

from catalog.models import EncoderState, ToolVector
from catalog.search.meaning import text_to_encode
from catalog.search.stored_vectors import digest_text
from catalog.selectors.documents import read_documents
from catalog.selectors.encoder import find_kept_encoder
from catalog.services.batches import batches

KEEP_UNUSED = timedelta(days=7)
# Comparing all vectors with all tools reads the whole catalog.
LOOK_OVER_EVERY = timedelta(days=1)
BATCH_ROWS = 500


def prune(*, now: datetime) -> None:
    # After a long stop this may run before the encoder in force is noted as used.
    in_force = find_kept_encoder()
    unused = EncoderState.objects.filter(used_at__lt=now - KEEP_UNUSED)
    for state in unused.exclude(name=in_force.name) if in_force else unused:
        _delete([*state.vectors.values_list("pk", flat=True)])
        state.delete()
    not_lately = Q(looked_over_at=None) | Q(looked_over_at__lt=now - LOOK_OVER_EVERY)
    due = list(EncoderState.objects.filter(not_lately))
    if due:
        digests = {digest_text(text_to_encode(document)) for document in read_documents()}
        for state in due:
            _look_over(state, digests, now)


def _look_over(state: EncoderState, digests: set[str], now: datetime) -> None:
    """A tool that comes back within days finds its vector."""
    rows = list(state.vectors.values_list("pk", "digest", "unused_since"))
    newly_unused = [pk for pk, digest, since in rows if since is None and digest not in digests]
    used_again = [pk for pk, digest, since in rows if since is not None and digest in digests]
    for keys, since in ((newly_unused, now), (used_again, None)):
        for batch in batches(keys, BATCH_ROWS):
            ToolVector.objects.filter(pk__in=batch).update(unused_since=since)
    long_ago = now - KEEP_UNUSED
    _delete([pk for pk, digest, since in rows if since and since < long_ago and digest not in digests])
    EncoderState.objects.filter(pk=state.pk).update(looked_over_at=now)


def _delete(keys: list[int]) -> None:
    for batch in batches(keys, BATCH_ROWS):
        ToolVector.objects.filter(pk__in=batch).delete()
