"""Which definitions count as approved, and which of the others a policy's quarantine holds back."""

from collections.abc import Iterable, Mapping

from catalog.domain.choices import Approval, Quarantine

_HELD: Mapping[Quarantine, frozenset[Approval]] = {
    Quarantine.OFF: frozenset(),
    Quarantine.CHANGED: frozenset({Approval.CHANGED}),
    Quarantine.NEW_AND_CHANGED: frozenset({Approval.NEW, Approval.CHANGED}),
}


def judge(*, digest: str, baseline: str, is_approved: bool) -> Approval:
    """How a definition stands. `baseline` is the form that was approved, or the first of a tool that never
    was; a definition that goes back to it stands as it did before.
    """
    if digest != baseline:
        return Approval.CHANGED
    return Approval.APPROVED if is_approved else Approval.NEW


def held_by(quarantine: Quarantine) -> frozenset[Approval]:
    """What a policy with this setting keeps out of every list, sum and search."""
    return _HELD[quarantine]


def newly_held(wanted: Quarantine, in_force: Iterable[Quarantine]) -> frozenset[Approval]:
    """What one policy would begin to hold back that no policy holds back yet.

    Tools known at that moment that no admin has looked at are trusted as they are: whoever switches
    quarantine on wants to be asked about what comes next, and not to cut every agent off.
    """
    return held_by(wanted).difference(*map(held_by, in_force))
