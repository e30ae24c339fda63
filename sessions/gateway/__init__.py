"""The agents' second door: any MCP client gets the policy's tools, searched, described and called."""
