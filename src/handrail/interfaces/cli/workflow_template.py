"""The workflow that `handrail workflow new` begins with, and its tests. Texts only; `ID` and `NAME` are filled in."""

from __future__ import annotations

from typing import Final

WORKFLOW: Final = """\
id: ID
name: NAME
version: 0.1.0
description: Say in one sentence when somebody should use this.
category: change
tags: [example]
inputs:
  task: {type: string, minLength: 3, description: What is to be done.}
guidance:
  - Change nothing that the task does not ask for.
steps:
  - id: look
    title: Find out what has to change
    prompt: |
      Task: {{ inputs.task }}

      Find every place that has to change, and read it. Hand in the places, and whether the change can break anything
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
      {{ inputs.task }} touches {{ steps.look.output.places | join(", ") }} and can break something for others. Go on?
  - id: change
    title: Make the change
    prompt: |
      Make the change in {{ steps.look.output.places | join(", ") }}, and nothing else. Hand in a summary of it.
    output: {type: object, required: [summary], properties: {summary: {type: string}}}
    checks:
      - {rule: length, of: summary, min: 20, severity: major, message: Say what was changed and why.}
    effect: reversible
    undo: {prompt: 'Take back what you changed: {{ steps.change.output.summary }}'}
outputs:
  summary: steps.change.output.summary
"""

TESTS: Final = """\
workflow: ID
tests:
  - name: a harmless change is made without asking
    inputs: {task: rename a setting}
    outputs:
      look: {places: [settings.py], risky: false}
      change: {summary: renamed the setting in its only place}
    expect:
      end: completed
      path: [look, change]
      skipped: [agree]
      outputs: {summary: renamed the setting in its only place}
  - name: a summary that says nothing is refused, and the next one is accepted
    inputs: {task: rename a setting}
    outputs:
      look: {places: [settings.py], risky: false}
      change: {try: [{summary: done}, {summary: renamed the setting in its only place}]}
    expect: {end: completed, findings: {change: [length]}}
  - name: a risky change is made once a person has agreed
    inputs: {task: rename a setting}
    outputs:
      look: {places: [settings.py, api.py], risky: true}
      change: {summary: renamed the setting in both places}
    expect: {end: completed, path: [look, agree, change]}
  - name: nothing is changed after a no
    inputs: {task: rename a setting}
    outputs:
      look: {places: [settings.py, api.py], risky: true}
    approvals: {agree: reject}
    expect: {end: waiting, path: [look]}
"""
