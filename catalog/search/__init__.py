"""The search core: words, index, compiled scoring, rankers. It needs no database."""

import os

# Before numpy is first imported: its products here take microseconds, and on a busy machine threads that
# wait for one another make them take milliseconds. The processes of the service are what uses the cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
