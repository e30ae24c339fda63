"""Which definitions are approved, and which of the others a policy's quarantine locks."""

from collections.abc import Iterable, Mapping

from catalog.domain.choices import Approval, Quarantine

_HELD: Mapping[Quarantine, frozenset[Approval]] = {
    Quarantine.OFF: frozenset(),
    Quarantine.CHANGED: frozenset({Approval.CHANGED}),
    Quarantine.NEW_AND_CHANGED: frozenset({Approval.NEW, Approval.CHANGED}),
}


def approval_after(*, digest: str, baseline: str, is_approved: bool) -> Approval:
    """The approval of a definition. `baseline` is the approved form, or the first one of a tool that never
    was approved; a definition that returns to it gets its approval back.
    """
    if digest != baseline:
        return Approval.CHANGED
    return Approval.APPROVED if is_approved else Approval.NEW


def held_by(quarantine: Quarantine) -> frozenset[Approval]:
    """The approvals that a policy with this setting keeps out of every list, sum and search."""
    return _HELD[quarantine]


def newly_held(wanted: Quarantine, in_force: Iterable[Quarantine]) -> frozenset[Approval]:
    """The approvals that one policy would begin to lock and no policy locks yet.

    Known tools that no admin has reviewed are trusted as they are: whoever turns quarantine on wants to be
    asked about later changes, not to cut every agent off.
    """
    return held_by(wanted).difference(*map(held_by, in_force))
