"""Snippets that connect an agent, complete: address, key and a first query are filled in.

One row of `GUIDES` is one tab of the page that shows them; another way to connect is another row.
"""

from dataclasses import dataclass

KEY_PLACEHOLDER = "tk_YOUR_KEY"
_ADDRESS, _KEY, _QUERY = "@address@", "@key@", "@query@"

_CURL = """\
export TOOLSEARCH_URL=@address@ TOOLSEARCH_KEY=@key@
call() { curl -sS --fail-with-body -H "Authorization: Bearer $TOOLSEARCH_KEY" "$@"; echo; }

# 1. Begin a session.
session=$(call -X POST "$TOOLSEARCH_URL/api/v1/sessions" --json '{}' | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')

# 2. Read the tool list: what loads at once, the search tool, and the prompt.
call "$TOOLSEARCH_URL/api/v1/sessions/$session/tools"

# 3. Search, and load what is found.
call -X POST "$TOOLSEARCH_URL/api/v1/sessions/$session/search" --json '{"query": "@query@"}'

# 4. End the turn.
call -X POST "$TOOLSEARCH_URL/api/v1/sessions/$session/turns" --json '{}'
"""

_CALLING = """\
TOOLSEARCH_URL = "@address@"
TOOLSEARCH_KEY = "@key@"


def toolsearch(method, path, body=None):
    request = urllib.request.Request(
        TOOLSEARCH_URL + "/api/v1" + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": "Bearer " + TOOLSEARCH_KEY, "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def run_tool(server, tool, arguments):
    return f"{server}/{tool} was called with {arguments}"  # your MCP client goes here
"""

_ANTHROPIC = f"""\
import json
import urllib.request

import anthropic  # reads ANTHROPIC_API_KEY

{_CALLING}

model = "claude-opus-4-5"
session = "/sessions/" + toolsearch("POST", "/sessions", {{"model": model}})["id"]
listed = toolsearch("GET", session + "/tools?format=anthropic")
messages = [{{"role": "user", "content": "Use your tools: @query@."}}]
client = anthropic.Anthropic()

while True:
    answer = client.messages.create(
        model=model,
        max_tokens=1024,
        system=listed["prompt"] or anthropic.NOT_GIVEN,
        tools=listed["tools"],
        messages=messages,
    )
    messages.append({{"role": "assistant", "content": answer.content}})
    if answer.stop_reason != "tool_use":
        break
    results, called = [], []
    for block in answer.content:
        if block.type != "tool_use":
            continue
        if listed["search_tool"] and block.name == listed["search_tool"]["name"]:
            content = toolsearch("POST", session + "/search", block.input)["anthropic"]
        else:
            content = run_tool(*listed["routes"][block.name], block.input)
            called.append(block.name)
        results.append({{"type": "tool_result", "tool_use_id": block.id, "content": content}})
    messages.append({{"role": "user", "content": results}})
    toolsearch("POST", session + "/turns", {{"called": called, "context_used": answer.usage.input_tokens}})

print(answer.content[-1].text)
"""

_OPENAI = f"""\
import json
import urllib.request

import openai  # reads OPENAI_API_KEY

{_CALLING}

model = "gpt-5.4"
session = "/sessions/" + toolsearch("POST", "/sessions", {{"model": model}})["id"]
listed = toolsearch("GET", session + "/tools?format=openai")
routes = dict(listed["routes"])
items = [{{"role": "user", "content": "Use your tools: @query@."}}]
client = openai.OpenAI()

while True:
    answer = client.responses.create(
        model=model, instructions=listed["prompt"], tools=listed["tools"], input=items
    )
    items += [item.model_dump(exclude_none=True) for item in answer.output]
    results = []
    for item in answer.output:
        if item.type == "tool_search_call":
            found = toolsearch("POST", session + "/search", {{**item.arguments, "call_id": item.call_id}})
            routes |= {{match["name"]: [match["server"], match["tool"]] for match in found["matches"]}}
            results.append(found["openai"])
        elif item.type == "function_call":
            output = run_tool(*routes[item.name], item.arguments)
            results.append({{"type": "function_call_output", "call_id": item.call_id, "output": output}})
    if not results:
        break
    items += results
    toolsearch("POST", session + "/turns", {{}})

print(answer.output_text)
"""


@dataclass(frozen=True, slots=True)
class Guide:
    """One way to connect. `install` is a command to run first, if there is one."""

    slug: str
    label: str
    explanation: str
    text: str
    install: str = ""

    def fill(self, *, address: str, key: str, query: str) -> str:
        """The snippet as it is copied. The caller answers for what it fills in: it becomes code."""
        filled = self.text.replace(_ADDRESS, address).replace(_KEY, key)
        return filled.replace(_QUERY, query)


GUIDES = (
    Guide(
        slug="curl",
        label="curl",
        explanation="The four calls of an agent's turn, from a shell.",
        text=_CURL,
    ),
    Guide(
        slug="anthropic",
        label="Anthropic SDK",
        explanation="A loop over the Messages API: the model searches, and calls what it has found.",
        text=_ANTHROPIC,
        install="pip install anthropic",
    ),
    Guide(
        slug="openai",
        label="OpenAI SDK",
        explanation="A loop over the Responses API: the model searches, and calls what it has found.",
        text=_OPENAI,
        install="pip install openai",
    ),
)
