"""An agent of pydantic-ai: GATEWAY PROMPT, with the key in TOOLSEARCH_KEY."""

import asyncio
import os
import sys

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

gateway, prompt = sys.argv[1:]
headers = {"Authorization": f"Bearer {os.environ['TOOLSEARCH_KEY']}"}
agent = Agent("openai-chat:scripted", toolsets=[MCPToolset(gateway, headers=headers)])


async def main() -> None:
    async with agent:
        print((await agent.run(prompt)).output)


asyncio.run(main())
