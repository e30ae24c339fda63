"""Processes that a worker forks end when it is killed."""

import subprocess
import sys

from tests.harness.instance import ROOT

# The child holds the output open: it ends when the child does.
FORK = """
import os, time
from toolsearch_site.cluster.parent_death import exit_when_orphaned
if not os.fork():
    exit_when_orphaned(look_every_seconds=0.05)
    print("watching", flush=True)
time.sleep(60)
"""


def test_forked_process_ends_soon_after_its_parent() -> None:
    command = [sys.executable, "-c", FORK]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "watching\n"
        parent.kill()
        rest, _ = parent.communicate(timeout=30)
    assert rest == ""
