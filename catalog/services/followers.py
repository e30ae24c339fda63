"""What follows the catalog: the search index and every policy's decisions."""

from catalog.services import decisions, reindex


def request_all() -> None:
    """Ask the workers to bring both up to date."""
    reindex.request_update()
    decisions.request_decisions()


def request_if_behind() -> None:
    """The same for whichever is behind, whatever the cause."""
    reindex.request_if_behind()
    decisions.request_if_behind()


def bring_up_to_date() -> None:
    """Do it here and now: for commands that return when their change is in force."""
    decisions.bring_up_to_date()
    reindex.bring_up_to_date()
