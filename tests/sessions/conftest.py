"""Fixtures shared by tests of sessions."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from sessions.services import write_behind

Recording = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def recording(django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks) -> Recording:
    """What is done inside is committed at the end, and its record written."""

    @contextmanager
    def record() -> Iterator[None]:
        with django_capture_on_commit_callbacks(execute=True):
            yield
        write_behind.flush()

    return record
