"""`python -m toolsearch_site.cluster.check_node`: exits 0 while this container's node is healthy.

It does not start Django, so it is cheap. A node without a server is healthy while its supervisor runs.
"""

import os
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

TIMEOUT_SECONDS = 4


def is_well(supervisor: str, variables: Mapping[str, str]) -> bool:
    """Each server of a node must answer; without one its supervisor must run, which restarts the dead."""
    port = int(variables.get("PORT") or 8000)
    ports = {"web": port, "gateway": int(variables.get("TOOLSEARCH_GATEWAY_PORT") or port + 1)}
    roles = ports.keys() & supervisor.split()
    return all(_answers(ports[role]) for role in roles) if roles else "run_node" in supervisor


def _answers(port: int) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"http://127.0.0.1:{port}/healthz", timeout=TIMEOUT_SECONDS) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def main() -> None:
    command = Path("/proc/1/cmdline").read_bytes().replace(b"\0", b" ").decode()
    sys.exit(0 if is_well(command, os.environ) else 1)


if __name__ == "__main__":
    main()
