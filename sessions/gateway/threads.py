"""Runs what reads or writes the database on threads of its own, which keep their connections."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
R = TypeVar("R")


class Threads:
    def __init__(self, number: int) -> None:
        self._executor = ThreadPoolExecutor(number, thread_name_prefix="gateway")

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The work's result. Cancelling the caller leaves it running: it is short."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, partial(_work, partial(work, *args, **kwargs)))

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)


def _work(work: Callable[[], R]) -> R:
    try:
        return work()
    finally:
        close_old_connections()  # as at a request's end: gives a pooled connection back
