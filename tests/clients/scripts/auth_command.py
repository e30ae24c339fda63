"""The conformance suite's command for a client: PORT ADDRESS, passed on to tests/clients/auth_client.py.

Prints what came of it, as JSON, and fails where no tool could be called.
"""

import json
import os
import socket
import sys

port, address = sys.argv[1:]
context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
asked = {
    "address": address,
    "scenario": os.environ["MCP_CONFORMANCE_SCENARIO"],
    "own_client": {name: value for name, value in context.items() if name != "name"},
}
with socket.create_connection(("127.0.0.1", int(port))) as connection:
    connection.sendall(f"{json.dumps(asked)}\n".encode())
    told = connection.makefile().read()
print(told)
sys.exit("result" not in json.loads(told))
