"""Formats durations as people write them and the engine reads them: `30 days`, `1 hour`."""


def write_span(seconds: int) -> str:
    """In the largest unit that divides it."""
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds % size == 0:
            count = seconds // size
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return f"{seconds} seconds"
