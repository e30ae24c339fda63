"""FastMCP's client without a model: GATEWAY QUERY TOOL CALLER ARGUMENTS, the key in TOOLSEARCH_KEY.

Prints the names that are listed, what the search found and what the call gave, as JSON.
"""

import asyncio
import json
import os
import sys

from fastmcp import Client

gateway, query, tool, caller, arguments = sys.argv[1:]


async def main() -> None:
    async with Client(gateway, auth=os.environ["TOOLSEARCH_KEY"]) as client:
        listed = [listed.name for listed in await client.list_tools()]
        found = await client.call_tool("search_tools", {"query": query})
        given = await client.call_tool(caller, {"name": tool, "arguments": json.loads(arguments)})
        texts = [[part.text for part in result.content] for result in (found, given)]
        print(json.dumps({"listed": listed, "found": texts[0], "given": texts[1]}))


asyncio.run(main())
