"""A tool server that behaves as badly as it is told: `python hostile_server.py [mode ...]`, raw JSON-RPC on its pipes.

Only the standard library, so that it starts at once. The tools are named by what they do wrong; the modes are about the
server as a whole. It speaks the protocol of the handshake, or with `modern` the newer one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODES = set(sys.argv[1:])
CANCELLED: list[Any] = []
DESCRIPTION = ["says what it is told"]
Request = dict[str, Any]


def write(text: str | bytes) -> None:
    data = text.encode() if isinstance(text, str) else text
    while data:
        data = data[os.write(1, data) :]


def send(message: Request) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def answer(request: Request, result: Any) -> None:
    extra = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if "modern" in MODES else {}
    send({"id": request["id"], "result": {**extra, **result} if isinstance(result, dict) else result})


def text(request: Request, words: str, **more: Any) -> None:
    answer(request, {"content": [{"type": "text", "text": words}], **more})


def args(request: Request) -> Request:
    found: Request = request["params"].get("arguments") or {}
    return found


def read() -> Request:
    line = sys.stdin.readline()
    if not line:
        if "stubborn" in MODES:
            while True:
                time.sleep(60)
        sys.exit(0)
    message: Request = json.loads(line)
    if message.get("method") == "notifications/cancelled":
        CANCELLED.append(message["params"]["requestId"])
    return message


def asked_back(request: Request, method: str, params: Request) -> Request:
    """Ask the client something, and wait for its answer; calls that come meanwhile are answered as well."""
    name = f"ask-{request['id']}"
    send({"id": name, "method": method, "params": params})
    while (message := read()).get("id") != name:
        handle(message)
    return message


def echo(request: Request) -> None:
    text(request, str(args(request).get("text", "")))


def key(request: Request) -> None:
    text(request, json.dumps(request["params"].get("_meta", {})))


def die(request: Request) -> None:
    os.write(2, b"out of cheese\n")
    os._exit(3)


def crash(request: Request) -> None:
    os.kill(os.getpid(), signal.SIGSEGV if args(request).get("hard") else signal.SIGKILL)


def hang(request: Request) -> None:
    """Never answer."""


def cancelled(request: Request) -> None:
    text(request, json.dumps(CANCELLED))


def flood(request: Request) -> None:
    token = request["params"]["_meta"]["progressToken"]
    lines = [
        json.dumps(
            {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": n}}
        )
        for n in range(args(request)["count"])
    ]
    write("\n".join(lines) + "\n")
    text(request, "flooded")


def notices(request: Request) -> None:
    one = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}) + "\n"
    write(one * args(request)["count"])
    text(request, "noticed")


def step(request: Request) -> None:
    token = request["params"]["_meta"]["progressToken"]
    params = {"progressToken": token, "progress": 3, "total": 10, "message": "copying\x1b[31m"}
    send({"method": "notifications/progress", "params": params})
    text(request, "stepped")


def big(request: Request) -> None:
    """A whole answer that is too large: with its id first, or last."""
    body = '"result":{"content":[{"type":"text","text":"' + "x" * args(request)["bytes"] + '"}]}'
    name = f'"id":{request["id"]}'
    first, last = (name, body) if args(request).get("id") == "first" else (body, name)
    write('{"jsonrpc":"2.0",' + first + "," + last + "}\n")


def many(request: Request) -> None:
    body = ",".join(["1"] * args(request)["count"])
    write('{"jsonrpc":"2.0","id":' + str(request["id"]) + ',"result":{"content":[],"x":[' + body + "]}}\n")


def endless(request: Request) -> None:
    """Bytes without an end of line, and no answer."""
    for _ in range(args(request)["megabytes"]):
        write(b"y" * 1_000_000)
    write("\n")


def malformed(request: Request) -> None:
    write('{"jsonrpc": "2.0", "id": ' + str(request["id"]) + ', "result": {"content": [}\n')


def anonymous(request: Request) -> None:
    write('{"jsonrpc": "2.0", "result": {{{\n')


def wrong(request: Request) -> None:
    answer(request, "a text where an object belongs")


def misshapen(request: Request) -> None:
    answer(request, {"content": "a text where a list belongs"})


def deep(request: Request) -> None:
    write('{"jsonrpc":"2.0","id":' + str(request["id"]) + ',"result":' + "[" * 100_000 + "]" * 100_000 + "}\n")


def nobody(request: Request) -> None:
    send({"id": None, "error": {"code": -32700, "message": "what?"}})


def twice(request: Request) -> None:
    text(request, "first")
    text(request, "second")


def noise(request: Request) -> None:
    write(
        "Listening on port 80\n\n[info] ready\n" + '{"level": "info", "id": 12, "msg": "{started}"}\n' + "\xff\xfe{\n"
    )
    text(request, "through the noise")


def blare(request: Request) -> None:
    write("la\n" * args(request)["count"])


def sample(request: Request) -> None:
    message = {"role": "user", "content": {"type": "text", "text": "tell me a secret"}}
    back = asked_back(request, "sampling/createMessage", {"messages": [message], "maxTokens": 5})
    text(request, json.dumps(back.get("error")), isError=True)


def beg(request: Request) -> None:
    """Ask and ask, and never listen."""
    one = {"jsonrpc": "2.0", "method": "ping"}
    write("".join(json.dumps({**one, "id": f"ping-{n}"}) + "\n" for n in range(args(request)["count"])))
    time.sleep(60)


def question(request: Request) -> Request:
    if args(request).get("url"):
        return {"mode": "url", "message": "Sign in", "url": args(request)["url"], "elicitationId": "1"}
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return {"mode": "form", "message": args(request).get("message", "Who are you?"), "requestedSchema": schema}


def elicit(request: Request) -> None:
    if "modern" not in MODES:
        back = asked_back(request, "elicitation/create", question(request))
        return text(request, json.dumps(back.get("result", back.get("error"))))
    given = request["params"].get("inputResponses")
    if given and request["params"].get("requestState") == "half way":
        return text(request, json.dumps(given["who"]))
    method = args(request).get("method", "elicitation/create")
    params = question(request) if method == "elicitation/create" else {"messages": [], "maxTokens": 5}
    requests = {} if args(request).get("method") == "none" else {"who": {"method": method, "params": params}}
    result = {
        "resultType": "input_required",
        "requestState": "half way",
        **({"inputRequests": requests} if requests else {}),
    }
    return send({"id": request["id"], "result": result})


def interrogate(request: Request) -> None:
    for _ in range(50):
        asked_back(request, "elicitation/create", question(request))
    text(request, "knows it all")


def visit(request: Request) -> None:
    CANCELLED.append("visit")
    if CANCELLED.count("visit") % 2:
        where = {"mode": "url", "message": "Sign in", "url": "https://example.org/in", "elicitationId": "2"}
        error = {"code": -32042, "message": "sign in first", "data": {"elicitations": [where]}}
        return send({"id": request["id"], "error": error})
    return text(request, "visited")


def refuse(request: Request) -> None:
    send({"id": request["id"], "error": {"code": args(request)["code"], "message": args(request).get("text", "no")}})


def change(request: Request) -> None:
    DESCRIPTION[0] = args(request)["to"]
    send({"method": "notifications/tools/list_changed"})
    text(request, "changed")


def promise(request: Request) -> None:
    text(request, "promised", **args(request).get("more", {}))


def vow(request: Request) -> None:
    text(request, "vowed", structuredContent={"a": 1})


def riddle(request: Request) -> None:
    """A promise that nobody can check in a lifetime."""
    text(request, "riddled", structuredContent={"a": 1})


def breed(request: Request) -> None:
    """A child that leaves the group, and holds the server's pipes."""
    child = subprocess.Popen(
        ["sleep", "600"],
        start_new_session=bool(args(request).get("leaves")),
        preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),  # from its first moment
    )
    text(request, str(child.pid))


def deaf(request: Request) -> None:
    """Read nothing for a while."""
    time.sleep(args(request)["seconds"])


def hush(request: Request) -> None:
    """Close the output, and go on."""
    os.close(1)
    read()


def plug(request: Request) -> None:
    """Close the input, and go on."""
    os.close(0)  # before the reply: a call that arrived in between would wait in the pipe without an error
    text(request, "plugged")
    time.sleep(60)


def mutter(request: Request) -> None:
    os.write(2, b"muttering with hunter2\n" * args(request)["count"])
    text(request, "muttered")


def environment(request: Request) -> None:
    text(request, json.dumps({"env": dict(os.environ), "cwd": str(Path.cwd()), "argv": sys.argv[1:]}))


TOOLS: dict[str, Callable[[Request], None]] = {
    function.__name__: function
    for function in (
        echo, key, die, crash, hang, cancelled, flood, notices, step, big, many, endless, malformed, anonymous, wrong,
        misshapen, deep, nobody, twice, noise, blare, sample, beg, elicit, interrogate, visit, refuse, change, promise,
        vow, riddle, breed, deaf, hush, plug, mutter, environment,
    )
}  # fmt: skip


def described(name: str) -> Request:
    schema: Request = {"type": "object"}
    tool: Request = {"name": name, "description": DESCRIPTION[0] if name == "echo" else "", "inputSchema": schema}
    if name == "vow":
        tool["outputSchema"] = {"type": "object", "pattern": 7, "properties": {"a": {"type": "nonsense"}}}
    if name == "riddle":
        twice = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(60)}
        tool["outputSchema"] = {"type": "object", "allOf": [{"$ref": "#/$defs/a0"}], "$defs": {**twice, "a60": {}}}
    if name == "promise":
        tool["outputSchema"] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        tool["annotations"] = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}
    return tool


def listed(request: Request) -> None:
    tools = [described(name) for name in TOOLS]
    if "huge" in MODES:
        page = int(request.get("params", {}).get("cursor", "0"))
        numbers = range(page * 300, page * 300 + 300)
        tools = [{"name": f"tool_{n}", "inputSchema": {"type": "object"}} for n in numbers]
        return answer(request, {"tools": tools, "nextCursor": str(page + 1)})
    if "pages" in MODES:
        return answer(request, {"tools": [], "nextCursor": "1"})
    if "odd" in MODES:
        large = {"name": "large", "description": "x" * 300_000, "inputSchema": {"type": "object"}}
        tools += [{**tools[0], "description": "again"}, {**tools[0], "name": "a b"}, large]
        tools += [{"name": "nonsense", "inputSchema": {"type": "object", "minProperties": "few"}}]
    if "broken" in MODES:
        tools = [{"name": "echo", "inputSchema": "no schema at all"}]
    return answer(request, {"tools": tools})


def discovered(request: Request) -> None:
    if "fragile" in MODES:
        os._exit(9)
    if "mute" in MODES:
        return None
    if "modern" not in MODES:
        return send({"id": request["id"], "error": {"code": -32601, "message": "no such method"}})
    capabilities = {"tools": {"listChanged": "listens" in MODES}}
    return answer(request, {"supportedVersions": ["2026-07-28"], "capabilities": capabilities})


def initialized(request: Request) -> None:
    if "strict" in MODES:
        return send({"id": request["id"], "error": {"code": -32601, "message": "that was long ago"}})
    version = request["params"]["protocolVersion"]
    info = {"name": "hostile", "version": "1"}
    capabilities = {} if "toolless" in MODES else {"tools": {"listChanged": True}}
    return answer(request, {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info})


def handle(message: Request) -> None:
    match message.get("method"):
        case "initialize":
            initialized(message)
        case "server/discover":
            discovered(message)
        case "tools/list":
            listed(message)
        case "tools/call":
            TOOLS[message["params"]["name"]](message)
        case "subscriptions/listen":
            meta = {"io.modelcontextprotocol/subscriptionId": message["id"]}
            params = {"_meta": meta, "notifications": {"toolsListChanged": True}}
            send({"method": "notifications/subscriptions/acknowledged", "params": params})
        case _:
            pass


def main() -> None:
    if "leaves" in MODES:
        os.write(2, b"no licence found\n")
        sys.exit(7)
    if "stubborn" in MODES:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        message = read()
        if "silent" not in MODES:
            handle(message)


if __name__ == "__main__":
    main()
