"""A tool server without a library, which starts at once: it keeps branches in a file, asks, and says how far it is.

The handshake era alone; what it does not know it refuses. Not a test."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TOOLS: list[dict[str, Any]] = [
    {"name": "create_branch", "description": "Make a branch.", "inputSchema": NAME},
    {"name": "delete_branch", "description": "Remove a branch.", "inputSchema": NAME},
    {
        "name": "list_branches",
        "description": "All branches.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "ask",
        "description": "Ask for a branch.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    },
]
FORM = {"type": "object", "properties": {"branch": {"type": "string"}}, "required": ["branch"]}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words: str, *, is_error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], "isError": is_error}


def asked() -> dict[str, Any]:
    """What the person answered; other messages meanwhile are let go."""
    send({"id": "q1", "method": "elicitation/create", "params": {"message": "Which branch?", "requestedSchema": FORM}})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "q1":
            answer: dict[str, Any] = message.get("result", {"action": "cancel"})
            return answer
    sys.exit(0)


def called(params: dict[str, Any], file: Path) -> dict[str, Any]:
    kept = file.read_text().split() if file.exists() else []
    name = params.get("arguments", {}).get("name", "")
    match params["name"]:
        case "create_branch":
            token = params.get("_meta", {}).get("progressToken")
            if token is not None:
                said = {"progressToken": token, "progress": 1, "total": 2, "message": "half way"}
                send({"method": "notifications/progress", "params": said})
            file.write_text(" ".join([*kept, name]))
            return text(f"made {name}")
        case "delete_branch":
            file.write_text(" ".join(one for one in kept if one != name))
            return text(f"removed {name}")
        case "list_branches":
            return text(" ".join(kept))
        case _:
            answer = asked()
            return text(f"{answer['action']} {answer.get('content', {}).get('branch', '')}".strip())


def main() -> None:
    file = Path(sys.argv[1])
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if number is None or method is None:
            continue
        match method:
            case "initialize":
                about = {"name": "branches", "version": "1.2.3"}
                version = message["params"]["protocolVersion"]
                send(
                    {
                        "id": number,
                        "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about},
                    }
                )
            case "tools/list":
                send({"id": number, "result": {"tools": TOOLS}})
            case "tools/call":
                send({"id": number, "result": called(message["params"], file)})
            case _:
                send({"id": number, "error": {"code": -32601, "message": f"unknown method {method}"}})


if __name__ == "__main__":
    main()
