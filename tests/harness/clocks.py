"""Clocks that a test sets."""

import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest


def set_clock(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, **functions: Callable[..., object]
) -> None:
    """Give one module a `time` with these functions in place of its own.

    The real one stays as it is: a library that is first imported meanwhile would keep a clock that stands
    still, and wait for ever in a later test.
    """
    monkeypatch.setattr(module, "time", SimpleNamespace(**{**vars(time), **functions}))
