"""What can be wrong with an index. Each is an `Unavailable`: the caller rebuilds, or answers without the
index.
"""

from catalog.domain.errors import Unavailable


class IndexDamaged(Unavailable):
    """The index is missing, incomplete or of another format: build it anew."""

    title = "The search index must be rebuilt"


class IndexUnsafe(Unavailable):
    """The folder belongs to someone else or others may write to it; nothing in it can be trusted."""

    title = "The search index is not private"


class IndexBusy(Unavailable):
    """Another writer holds the index for longer than we wait."""

    title = "The search index is being written"
