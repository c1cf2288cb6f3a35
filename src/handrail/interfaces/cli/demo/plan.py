"""The plan that the demo runs, as an author would write it, and two typical mistakes. Data only."""

from __future__ import annotations

from typing import Final

OLD_VERSION: Final = "1.1.0"
NEW_VERSION: Final = "1.2.0"

RELEASE: Final = """\
id: ship-release
name: Ship a release
version: 1.0.0
inputs:
  version: {type: string}
  registry: {type: string}
steps:
  - id: notes
    tool: file.write
    args: {path: NOTES.md, text: "What is new in {{ inputs.version }}: it can be undone.\\n"}
  - id: bump
    tool: file.write
    args: {path: VERSION, text: "{{ inputs.version }}\\n"}
    after: []
  - id: ready
    tool: http.request
    args: {url: '{{ inputs.registry }}/ready'}
    retry: {attempts: 5, first: 300ms}
    timeout: 10s
    after: [notes, bump]
  - id: publish
    tool: http.request
    args: {method: POST, url: '{{ inputs.registry }}/packages', json: {version: '{{ inputs.version }}'}}
    undo: {tool: http.request, args: {method: DELETE, url: '{{ inputs.registry }}/packages'}}
    after: [ready]
  - id: go
    approve: Announce {{ inputs.version }} to everybody?
    after: [publish]
  - id: announce
    tool: file.append
    args: {path: NEWS.md, text: "{{ inputs.version }} is out.\\n"}
    after: [go]
outputs: {version: inputs.version}
"""
MISTAKES: Final = (("timeout: 10s", "timeot: 10s"), ("after: [ready]", "after: [redy]"))
"""The right text, and the mistyped one."""
