"""The workflow that `handrail workflow new` writes, and its tests. Texts only; `ID` and `NAME` are filled in."""

from __future__ import annotations

from typing import Final

WORKFLOW: Final = """\
id: ID
name: NAME
version: 0.1.0
description: Say in one sentence when to use this workflow.
category: change
tags: [example]
inputs:
  task: {type: string, minLength: 3, description: What should be done.}
guidance:
  - Change nothing that the task does not ask for.
steps:
  - id: look
    title: Find out what has to change
    prompt: |
      Task: {{ inputs.task }}

      Find every place that has to change, and read it. Submit the places, and whether the change can break anything
      for others.
    output:
      type: object
      required: [places, risky]
      properties:
        places: {type: array, minItems: 1, items: {type: string}}
        risky: {type: boolean}
  - id: agree
    title: Ask before a risky change
    when: steps.look.output.risky
    approve: |
      {{ inputs.task }} touches {{ steps.look.output.places | join(", ") }} and can break things for others. Continue?
  - id: change
    title: Make the change
    prompt: |
      Make the change in {{ steps.look.output.places | join(", ") }}, and nothing else. Submit a summary of it.
    output: {type: object, required: [summary], properties: {summary: {type: string}}}
    checks:
      - {rule: length, of: summary, min: 20, severity: major, message: Say what was changed and why.}
    effect: reversible
    undo: {prompt: 'Undo what you changed: {{ steps.change.output.summary }}'}
outputs:
  summary: steps.change.output.summary
"""

TESTS: Final = """\
workflow: ID
tests:
  - name: a harmless change needs no approval
    inputs: {task: rename a setting}
    outputs:
      look: {places: [settings.py], risky: false}
      change: {summary: renamed the setting in its only place}
    expect:
      end: completed
      path: [look, change]
      skipped: [agree]
      outputs: {summary: renamed the setting in its only place}
  - name: a summary that is too short is refused, and the next one is accepted
    inputs: {task: rename a setting}
    outputs:
      look: {places: [settings.py], risky: false}
      change: {try: [{summary: done}, {summary: renamed the setting in its only place}]}
    expect: {end: completed, findings: {change: [length]}}
  - name: a risky change is made after a person has approved it
    inputs: {task: rename a setting}
    outputs:
      look: {places: [settings.py, api.py], risky: true}
      change: {summary: renamed the setting in both places}
    expect: {end: completed, path: [look, agree, change]}
  - name: nothing is changed after a rejection
    inputs: {task: rename a setting}
    outputs:
      look: {places: [settings.py, api.py], risky: true}
    approvals: {agree: reject}
    expect: {end: waiting, path: [look]}
"""
