"""State derived from the catalog: search index, vectors, policies' decisions, what saved queries find."""

from catalog.services import decisions, encoding, reindex, saved_runs


def request_all() -> None:
    """Ask the workers to bring index, vectors and decisions up to date."""
    reindex.request_update()
    encoding.request_encoding()
    decisions.request_decisions()


def request_if_behind() -> None:
    """Request whichever is behind."""
    reindex.request_if_behind()
    encoding.request_if_behind()
    decisions.request_if_behind()
    saved_runs.request_if_behind()


def bring_up_to_date() -> None:
    """Update index and decisions here, for commands that return when their change is in force."""
    decisions.bring_up_to_date()
    reindex.bring_up_to_date()
