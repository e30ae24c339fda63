"""A stdio server written by hand, to be bad in the way its argument names. Uses the standard library only.

Each process of it calls in at ROLL_CALL, a port of the test, and holds that line until it dies.
"""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

PROTOCOL = "2025-11-25"
OBJECT = {"type": "object"}
FINE = {"name": "fine", "description": "A tool like any other.", "inputSchema": OBJECT}

Reply = dict[str, Any]


def call_in() -> socket.socket | None:
    port = os.environ.get("ROLL_CALL")
    if port is None:
        return None
    line = socket.create_connection(("127.0.0.1", int(port)))
    line.sendall(f"{os.getpid()}\n".encode())
    return line


def say(message: Reply) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def hang() -> Reply:
    """Waits for ever; what it would return is never seen."""
    threading.Event().wait()
    return {}


def greet(protocol: str = PROTOCOL) -> Reply:
    return {
        "protocolVersion": protocol,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "is_fine", "version": "1"},
        "instructions": f"My token is {os.environ.get('API_TOKEN')}.",
    }


def greet_with(**capabilities: Reply) -> Reply:
    greeting = greet()
    return {**greeting, "capabilities": {**greeting["capabilities"], **capabilities}}


def serve_lists(lists: dict[str, Callable[[str | None], Reply]], **capabilities: Reply) -> None:
    """The same for any lists: each request is answered with what is made of its cursor."""
    for line in sys.stdin:
        request = json.loads(line)
        method, identity = request.get("method"), request.get("id")
        if identity is None or method is None:
            continue
        if method == "initialize":
            say({"jsonrpc": "2.0", "id": identity, "result": greet_with(**capabilities)})
        elif method in lists:
            answer = lists[method]((request.get("params") or {}).get("cursor"))
            body = answer if "error" in answer else {"result": answer}
            say({"jsonrpc": "2.0", "id": identity, **body})
        else:
            say({"jsonrpc": "2.0", "id": identity, "error": {"code": -32601, "message": "Method not found"}})


def no_tools(name: str) -> Reply:
    return {"content": [], "isError": True}


def serve(
    list_page: Callable[[str | None], Reply],
    *,
    protocol: str = PROTOCOL,
    call_tool: Callable[[str], Reply] = no_tools,
) -> None:
    """Answer the handshake, then each `tools/list` with what `list_page` makes of its cursor.

    A call is answered with what `call_tool` makes of the tool's name.
    """
    for line in sys.stdin:
        request = json.loads(line)
        method, identity = request.get("method"), request.get("id")
        if identity is None or method is None:
            continue
        if method == "initialize":
            say({"jsonrpc": "2.0", "id": identity, "result": greet(protocol)})
        elif method == "tools/list":
            cursor = (request.get("params") or {}).get("cursor")
            say({"jsonrpc": "2.0", "id": identity, "result": list_page(cursor)})
        elif method == "tools/call":
            say({"jsonrpc": "2.0", "id": identity, "result": call_tool(request["params"]["name"])})
        else:
            say({"jsonrpc": "2.0", "id": identity, "error": {"code": -32601, "message": "Method not found"}})


def one_page(*tools: object) -> Callable[[str | None], Reply]:
    return lambda cursor: {"tools": list(tools)}


def is_fine() -> None:
    serve(one_page(FINE))


def exits_at_once() -> None:
    sys.stderr.write("config file is missing\n")
    sys.exit(3)


def hangs_on_connect() -> None:
    hang()


def hangs_on_list() -> None:
    serve(lambda cursor: hang())


def never_ends_its_pages() -> None:
    serve(lambda cursor: {"tools": [], "nextCursor": str(int(cursor or 0) + 1)})


def goes_in_a_circle() -> None:
    serve(lambda cursor: {"tools": [], "nextCursor": "b" if cursor == "a" else "a"})


def has_three_pages() -> None:
    pages: dict[str | None, Reply] = {
        None: {"tools": [FINE], "nextCursor": "2"},
        "2": {"tools": [{**FINE, "name": "finer"}], "nextCursor": "3"},
        "3": {"tools": [{**FINE, "name": "finest"}]},
    }
    serve(lambda cursor: pages[cursor])


def describes_at_length() -> None:
    serve(one_page({**FINE, "description": "x" * 50_000_000}))


def describes_one_too_long() -> None:
    serve(one_page(FINE, {**FINE, "name": "wordy", "description": "x" * 300_000}))


def never_ends_its_line() -> None:
    while True:
        sys.stdout.write("x" * 65536)


def spoils_its_json() -> None:
    sys.stdin.readline()
    sys.stdout.write('{"jsonrpc": "2.0", "id": 1, "result": {oops\n')
    sys.stdout.flush()
    hang()


def talks_of_other_things() -> None:
    sys.stdout.write("Listening on port 8080\n")
    sys.stdout.flush()
    hang()


def greets_with_a_banner() -> None:
    sys.stdout.write("Welcome!\n\n{'almost': 'JSON'}\n")
    serve(one_page(FINE))


def speaks_another_protocol() -> None:
    serve(one_page(FINE), protocol="1999-12-31")


def repeats_names() -> None:
    serve(one_page(FINE, {**FINE, "description": "Another."}))


def has_a_bad_schema() -> None:
    serve(
        one_page(FINE, {"name": "bad", "inputSchema": {"type": "object", "properties": {"n": {"type": 7}}}})
    )


def nests_one_deep() -> None:
    schema: dict[str, object] = {"type": "object"}
    for _ in range(150):
        schema = {"type": "object", "properties": {"a": schema}}
    serve(one_page(FINE, {**FINE, "name": "deep", "inputSchema": schema}, {**FINE, "name": "last"}))


def floods_stderr() -> None:
    def flood() -> None:
        while True:
            sys.stderr.write("noise " * 10_000 + "\n")

    threading.Thread(target=flood, daemon=True).start()
    serve(one_page(FINE))


def flood_with(message: Reply) -> None:
    """Greet, and then send the message without end, whatever is asked and answered."""
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("method") == "initialize":
            say({"jsonrpc": "2.0", "id": request["id"], "result": greet()})
            break
        if "id" in request:
            error = {"code": -32601, "message": "Method not found"}
            say({"jsonrpc": "2.0", "id": request["id"], "error": error})
    for number in itertools.count():
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message, "id": number}) + "\n")


def floods_requests() -> None:
    flood_with({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}})


def floods_notifications() -> None:
    message = json.dumps(
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}
    )
    sys.stdin.readline()
    while True:
        sys.stdout.write(message + "\n")


def asks_a_little_first() -> None:
    """Chats before it answers, as servers may: a request, log lines, a ping."""

    def list_page(cursor: str | None) -> Reply:
        say({"jsonrpc": "2.0", "id": "r", "method": "roots/list"})
        say({"jsonrpc": "2.0", "id": "p", "method": "ping"})
        for number in range(200):
            say(
                {
                    "jsonrpc": "2.0",
                    "method": "notifications/message",
                    "params": {"level": "info", "data": number},
                }
            )
        return {"tools": [FINE]}

    serve(list_page)


def answers_strangely() -> None:
    """What the SDK's own servers would not send."""
    extra: Reply = {
        "content": [{"type": "text", "text": "more", "shade": "blue"}],
        "weather": {"sun": True, "rain": None},
        "_meta": {"example.org/trace": "t1"},
    }
    answers: dict[str, Reply] = {"extra": extra, "mistyped": {"content": "no list"}}
    serve(one_page(FINE), call_tool=lambda name: answers.get(name) or no_tools(name))


def asks_without_end_in_a_call() -> None:
    def call_tool(name: str) -> Reply:
        for number in itertools.count() if name == "ask" else ():
            say({"jsonrpc": "2.0", "id": f"q{number}", "method": "roots/list"})
        return no_tools(name)

    serve(one_page(FINE), call_tool=call_tool)


def ends_on_an_unknown_question() -> None:
    """As servers do that accept nothing before `initialize`."""
    for line in sys.stdin:
        request = json.loads(line)
        if request["method"] != "initialize":
            sys.exit(1)
        say({"jsonrpc": "2.0", "id": request["id"], "result": greet()})
        break
    serve(one_page(FINE))


def clings_to_life() -> None:
    """Ignores every polite way to end it, and so does a child of its own in another session."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "--child" not in sys.argv:
        subprocess.Popen([*sys.orig_argv, "--child"], start_new_session=True)
    hang()


def tells_its_secrets() -> None:
    sys.stderr.write(f"args {sys.argv[2:]} env {os.environ.get('API_TOKEN')}\n")
    sys.exit(1)


def fails_with_its_secret() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("method") == "initialize":
            say({"jsonrpc": "2.0", "id": request["id"], "result": greet()})
        elif "id" in request:
            error = {"code": -32000 - 50, "message": f"bad token {os.environ.get('API_TOKEN')}"}
            say({"jsonrpc": "2.0", "id": request["id"], "error": error})


def lists_its_secret() -> None:
    """The token in every text of a definition, and in definitions that are kept out."""
    token = os.environ.get("API_TOKEN", "")
    told = {
        "name": "use",
        "title": f"Use {token}",
        "description": f"Sends {token} at {os.environ.get('MODE')} from {sys.argv[2:]}.",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "string", "description": f"not {token}", "enum": [token, 1]}},
        },
        "_meta": {"note": token},
    }
    kept_out = (
        {"name": f"bad-{token}", "inputSchema": {"type": token}},
        {**told, "name": f"named-{token}"},
        {**told, "name": "keyed", "inputSchema": {"type": "object", "properties": {token: {}}}},
        {**told, "name": "requiring", "inputSchema": {"type": "object", "required": [f"a-{token}"]}},
    )
    fine = {**FINE, "description": "Hides ••• too.", f"x-{token}": token}
    serve(one_page(told, *kept_out, fine))


def lists_what_a_file_says() -> None:
    with open(sys.argv[2], encoding="utf-8") as file:
        serve(one_page(*json.load(file)))


def asks_the_old_way() -> None:
    """Lists a tool that asks questions for clients alone that say they answer them."""
    names = ["plain"]
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("method") == "initialize":
            names += ["asks"] if "elicitation" in request["params"]["capabilities"] else []
            say({"jsonrpc": "2.0", "id": request["id"], "result": greet()})
        elif request.get("method") == "tools/list":
            tools = [{**FINE, "name": name} for name in names]
            say({"jsonrpc": "2.0", "id": request["id"], "result": {"tools": tools}})
        elif "id" in request:
            error = {"code": -32601, "message": "Method not found"}
            say({"jsonrpc": "2.0", "id": request["id"], "error": error})


def page_of(name: str, *items: object, **more: object) -> Callable[[str | None], Reply]:
    return lambda cursor: {name: list(items), **more}


def offers_more() -> None:
    """Two pages of resources with bad ones among them; it has no templates, though it lists resources."""
    token = os.environ.get("API_TOKEN", "")
    note: Reply = {
        "uri": "memo://1",
        "name": "one",
        "description": f"With {token}.",
        "x-vendor": 1,
        "title": None,
    }
    prompt = {"name": "greet", "arguments": [{"name": "who", "required": True}]}
    pages: dict[str | None, Reply] = {
        None: {"resources": [note, {"uri": "memo://2"}, "nothing"], "nextCursor": "2"},
        "2": {"resources": [{**note, "name": "again"}, {"uri": f"memo://{token}", "name": "secret"}]},
    }
    leaking = {"name": "leak", "arguments": [{"name": token}]}
    lists = {
        "tools/list": one_page(FINE),
        "resources/list": lambda cursor: pages[cursor],
        "prompts/list": page_of("prompts", prompt, {"name": ""}, leaking),
    }
    serve_lists(lists, resources={}, prompts={}, completions={})


def offers_very_much() -> None:
    prompts = ({"name": f"p{number}", "description": "x" * 400} for number in range(40))
    pages = {"prompts/list": page_of("prompts", *prompts, nextCursor="more")}
    serve_lists({"tools/list": one_page(FINE), **pages}, prompts={})


def hangs_on_prompts() -> None:
    serve_lists({"tools/list": one_page(FINE), "prompts/list": lambda cursor: hang()}, prompts={})


def dies_on_prompts() -> None:
    serve_lists({"tools/list": one_page(FINE), "prompts/list": lambda cursor: sys.exit(1)}, prompts={})


def fails_on_prompts() -> None:
    error = {"error": {"code": -32603, "message": f"lost {os.environ.get('API_TOKEN')}"}}
    serve_lists({"tools/list": one_page(FINE), "prompts/list": lambda cursor: error}, prompts={})


def turns_in_a_circle_of_prompts() -> None:
    pages = page_of("prompts", nextCursor="a")
    serve_lists({"tools/list": one_page(FINE), "prompts/list": pages}, prompts={})


def lists_no_list_of_prompts() -> None:
    pages = page_of("prompts")
    serve_lists(
        {"tools/list": one_page(FINE), "prompts/list": lambda c: {**pages(c), "prompts": 7}}, prompts={}
    )


def shows_its_environment() -> None:
    serve(one_page({**FINE, "description": json.dumps(dict(os.environ)), "title": json.dumps(sys.argv[2:])}))


if __name__ == "__main__":
    line_to_test = call_in()
    globals()[sys.argv[1]]()
