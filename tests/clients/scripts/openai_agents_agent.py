"""An agent of openai-agents: GATEWAY PROMPT, with the key in TOOLSEARCH_KEY."""

import asyncio
import os
import sys

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp

gateway, prompt = sys.argv[1:]
headers = {"Authorization": f"Bearer {os.environ['TOOLSEARCH_KEY']}"}


async def main() -> None:
    set_tracing_disabled(True)
    async with MCPServerStreamableHttp(params={"url": gateway, "headers": headers}) as toolsearch:
        agent = Agent(name="scripted", model="scripted", mcp_servers=[toolsearch])
        print((await Runner.run(agent, prompt)).final_output)


asyncio.run(main())
