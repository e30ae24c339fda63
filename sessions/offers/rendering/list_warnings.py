"""Warnings of a tool list: a limit of the model's API is passed, or deferring costs more than it saves."""

from sessions.offers.rendering.formats import Format, ListForm

ANTHROPIC_MOST_DEFERRED = 10_000


def list_warnings(form: ListForm, *, deferred: int, full: int, sent: int, saved: int) -> list[str]:
    """`deferred` is the number of deferred tools in the list; the others are its tokens."""
    warnings, most = [], ANTHROPIC_MOST_DEFERRED
    if form.format is Format.ANTHROPIC and deferred > most:
        warnings.append(f"{deferred:,} tools are deferred; the Anthropic API searches {most:,} at most.")
    if deferred and saved < 0:
        warnings.append(
            f"Deferring costs {-saved:,} tokens more here: {sent:,} are sent,"
            f" {full:,} with every tool loaded. Load all tools: set the policy's mode to off."
        )
    return warnings
