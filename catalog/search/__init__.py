"""The search engine: words, index, compiled scores, rankers. It needs no database."""

import numpy as np  # noqa: F401 - loads the library whose threads are limited below
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

# Our products take microseconds; on a busy machine, threads that wait for one another make that milliseconds.
# The processes of the service are what uses the cores.
threadpool_limits(limits=1, user_api="blas")
