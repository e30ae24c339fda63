"""`python -m toolsearch_site.cluster.check_node`: exits 0 while this container's node is healthy.

It does not start Django, so it is cheap. A node without a web server is healthy while its supervisor runs.
"""

import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

TIMEOUT_SECONDS = 4


def is_well(port: str, supervisor: str) -> bool:
    """A web node must answer; any other must have its supervisor, which restarts dead programs."""
    if " web" not in supervisor:
        return "run_node" in supervisor
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"http://127.0.0.1:{port}/healthz", timeout=TIMEOUT_SECONDS) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def main() -> None:
    command = Path("/proc/1/cmdline").read_bytes().replace(b"\0", b" ").decode()
    sys.exit(0 if is_well(os.environ.get("PORT", "8000"), command) else 1)


if __name__ == "__main__":
    main()
