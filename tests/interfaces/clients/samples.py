"""Settings of clients for tests: as people write them, with other servers, unknown keys and comments."""

from __future__ import annotations

from handrail.interfaces.clients.client import CLIENTS, Client, Format, Scope
from handrail.interfaces.clients.launch import LaunchCommand

OURS = LaunchCommand("/opt/handrail/bin/handrail", ("mcp",))
MOVED = LaunchCommand("/usr/bin/handrail", ("mcp", "--project", "${workspaceFolder}"), {"HANDRAIL_HOME": "/data"})
ALL = tuple(CLIENTS.values())
PLACES = [(client, scope) for client in ALL for scope in Scope if scope is Scope.USER or client.project]

_JSON = """\
// what I use
{
  "theme": "dark", /* easy on the eyes */
  "KEY": {
    // my servers
    "other": {"command": "other", "args": []}, // keep this one
    "remote": {
      "url": "http://127.0.0.1:1/mcp", // not ours
    },
    // the end
  },
  "unknown": [1, 2.50, null],
}
"""
_TOML = """\
# what I use
model = "m" # a model

[mcp_servers.other]
command = "other"
args = [
  "[mcp_servers.handrail]", # a trap
]

# how I like it
[profiles.fast]
text = \"\"\"
[mcp_servers.handrail]
\"\"\"
"""
_YAML = """\
# what I use
GOOSE_MODEL: m   # a model
extensions:   # all of them
  developer:   # comes along
    enabled: true
    type: builtin
    # a remark
  memory: {type: builtin, enabled: false}

# the end
NOTES: |
  extensions:
    handrail: no
"""


def furnished(client: Client) -> str:
    """A file as a person keeps it."""
    texts = {Format.JSON: _JSON.replace("KEY", client.key), Format.TOML: _TOML, Format.YAML: _YAML}
    return texts[client.format]


def broken(client: Client) -> str:
    """A file that nobody can read."""
    return {Format.JSON: '{"a": [1,, 2]}', Format.TOML: "a = [1\nb", Format.YAML: "a: [1\nb: }"}[client.format]


def place_id(place: object) -> str:
    """How a client, or a scope, is called in the name of a test."""
    return place.name if isinstance(place, Client) else str(place)
