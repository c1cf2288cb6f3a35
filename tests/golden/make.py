"""Writes the golden journal of the present format: every kind of event, with every field filled in once.

    PYTHONPATH=tests python tests/golden/make.py

It refuses to touch a golden journal that exists: they are for ever.

A new kind of event, or a new field, goes into a new file (as `format-1-b` did), or the next format's."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from handrail.domain.definition.model import Category, Effect
from handrail.domain.journal import event as fact
from handrail.domain.journal import store_event as beside
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.codec import FORMAT, entry_of
from handrail.domain.journal.event import About, Event, How, Mode, Outcome, Proof
from handrail.engine.proving.stream_fold import change_of
from support import record_writer

HERE = Path(__file__).parent
AGENT = "agent:claude"

SHIPPED: list[Event] = [
    fact.RunStarted(
        definition="sha256:" + "0" * 64,
        workflow="ship-release@1.2.0",
        inputs={"version": "1.2.0", "targets": ["linux", "mac"], "dry": False, "limit": 1.5, "none": None},
        goal="ship 1.2.0",
        mode=Mode.RUN,
        deadline=1_763_240_000_000,
    ),
    fact.StepHandedOut(step="notes", agent="claude", until=1_763_230_900_000),
    fact.OutputRefused(step="notes", findings=({"rule": "file_exists", "severity": "critical"},)),
    fact.StepCompleted(step="notes", output={"file": "NOTES.md"}, proof=Proof.CLAIMED, checks=("file_exists",)),
    fact.VarsSet(vars={"branch": "release/1.2"}),
    fact.AttemptStarted(step="tag", attempt=1),
    fact.AttemptFailed(step="tag", attempt=1, category=Category.TRANSIENT, message="503"),
    fact.RetryScheduled(step="tag", attempt=2, due=1_763_230_000_500),
    fact.AttemptStarted(step="tag", attempt=2),
    fact.StepCompleted(step="tag", output={"name": "v1.2.0"}),
    fact.StepOpened(step="build", rounds=2),
    fact.AttemptStarted(step="build[0].make", attempt=1),
    fact.StepCompleted(step="build[0].make", output=["ünïcødé", "日本"]),
    fact.StepSkipped(step="build[1].make", reason="not for mac"),
    fact.StepCompleted(step="build"),
    fact.ApprovalRequested(step="go", digest="sha256:1", text="Publish?", by=("leads",), expires=1_763_300_000_000),
    fact.ApprovalGiven(step="go", digest="sha256:1", reason="looks good"),
    fact.RunPaused(reason="lunch"),
    fact.RunResumed(reason="back"),
    fact.DecisionRecorded(
        decision="ship today", reason="all green", step="go", alternatives=("wait",), details={"mood": "good"}
    ),
    fact.ActionRecorded(
        description="told the team",
        step="go",
        outcome=Outcome.DONE,
        action=fact.ActionKind.NOTIFIED,
        output="sent",
        details={"to": 12},
    ),
    fact.RunCompleted(outputs={"tag": "v1.2.0"}),
]
UNDONE: list[Event] = [
    fact.RunStarted(definition="sha256:" + "1" * 64, workflow="a-plan", mode=Mode.RUN),
    fact.AttemptStarted(step="a", attempt=1),
    fact.StepCompleted(step="a", output=1),
    fact.AttemptStarted(step="b", attempt=1),
    fact.StepBecameUncertain(step="b", attempt=1),
    fact.StepAccepted(step="b", reason="seen it happen", output={"ok": True}),
    fact.AttemptStarted(step="c", attempt=1),
    fact.StepFailed(step="c", category=Category.PERMISSION, message="403"),
    fact.StepRetried(step="c", reason="new token"),
    fact.StepCancelled(step="c"),
    fact.CompensationStarted(reason="bad release", steps=("b", "a")),
    fact.UndoStarted(step="b", attempt=1),
    fact.UndoFailed(step="b", attempt=1, category=Category.TOOL_ERROR, message="locked", final=True),
    fact.RunCompensationFailed(steps=("b",)),
    fact.StepCompensated(step="b", how=How.RECORDED, description="by hand", details={"ticket": 7}),
    fact.UndoStarted(step="a", attempt=1),
    fact.StepCompensated(step="a", how=How.EXECUTED),
    fact.RunCompensated(not_compensated=("mail",)),
]
REFUSED: list[Event] = [
    fact.RunStarted(definition="sha256:" + "2" * 64, workflow="gate", mode=Mode.RECORD),
    fact.ApprovalRequested(step="go", digest="sha256:2", text="Sure?"),
    fact.ApprovalRejected(step="go", digest="sha256:2", reason="not today"),
    fact.RunFailed(step="go", message="not today"),
]
LEFT: list[Event] = [
    fact.RunStarted(definition="sha256:" + "2" * 64, workflow="gate"),
    fact.ApprovalRequested(step="go", digest="sha256:3", text="Sure?", expires=1_763_230_000_001),
    fact.ApprovalExpired(step="go"),
    fact.RunCancelled(reason="nobody there"),
]
PLANNED: list[Event] = [
    beside.PlanSaved(version=1, definition="sha256:" + "3" * 64, name="Ship", steps=4, note="first"),
    beside.PlanSaved(version=2, definition="sha256:" + "4" * 64, name="Ship it", steps=5),
    beside.PlanRetired(reason="replaced"),
]
KEPT: list[Event] = [
    beside.StoreCreated(store="store_golden22", key="ed25519:00"),
    beside.JournalAccepted(reason="restored from backup", found="shorter than its last checkpoint"),
    beside.PayloadErased(stream="run_golden22", event=3, digest="aa", residue="bb", reason="a name"),
]
RESTORED: list[Event] = [
    beside.StoreCreated(store="store_golden44", key="00" * 32),
    beside.StoreRestored(backup="20260102T030405Z-0a1b2c3d", made=1_767_323_045_000, events=1, until="run_a:3"),
]
RETAINED: list[Event] = [
    beside.StoreCreated(store="store_golden55", key="00" * 32),
    beside.RunsArchived(
        archive="arc_golden22",
        digest="sha256:" + "aa" * 32,
        runs=(beside.ArchivedRun("run_golden22", 5, "bb" * 32), beside.ArchivedRun("run_golden33", 1, "cc" * 32)),
        reason="[retention]",
    ),
    beside.RunsUnarchived(archive="arc_golden22", runs=("run_golden22",), reason="an audit"),
    beside.ArchivedRunsDeleted(
        archive="arc_golden22", runs=("run_golden33",), reason="a name", remains="arc_golden33", digest="sha256:dd"
    ),
]
SHARED: list[Event] = [
    beside.StoreCreated(store="store_golden33", key="00" * 32),
    beside.NodeAdmitted(node="gpu-1", key="11" * 32, box="22" * 32, by="00" * 32, signature="33" * 64),
]
FORKED: list[Event] = [
    fact.RunStarted(
        definition="sha256:" + "5" * 64,
        workflow="looped",
        priority=3,
        fork=fact.Fork(run="run_shipped2", n=9, step="build", effects=("build[0].make",)),
    ),
    fact.StepCarried(step="notes", output={"file": "NOTES.md"}),
    fact.StepCarried(step="tag", is_skipped=True),
    fact.StepOpened(step="build", rounds=2, values=["linux", {"os": "mac"}]),
    fact.AttemptStarted(
        step="build[0].make",
        attempt=1,
        effect=Effect.REVERSIBLE,
        idempotent=True,
        capture={"path": "a.txt", "existed": True, "bytes": 12},
    ),
    fact.AttemptLost(step="build[0].make", attempt=1),
    fact.AttemptStarted(step="build[0].make", attempt=2, effect=Effect.REVERSIBLE, idempotent=True),
    fact.StepDeferred(step="build[0].make", attempt=2, due=1_763_230_060_000),
    fact.AttemptStarted(step="build[0].make", attempt=3, effect=Effect.REVERSIBLE, idempotent=True),
    fact.AnswerCameLate(
        step="build[0].make", attempt=2, output={"ok": False}, category=Category.TIMEOUT, message="too late"
    ),
    fact.StepCompleted(step="build[0].make", output={"ok": True}),
    fact.StepOpened(step="poll"),
    fact.RoundStarted(step="poll", round=0),
    fact.RoundStarted(step="poll", round=1, due=1_763_230_090_000),
    fact.AttemptStarted(step="poll[1].probe", attempt=1, effect=Effect.NONE),
    fact.StepCompleted(step="poll[1].probe", output=1.5),
    fact.StepCancelled(step="build"),
    fact.StepCancelled(step="poll"),
    fact.CompensationStarted(reason="poll failed", steps=("build[0].make",)),
    fact.UndoStarted(step="build[0].make", attempt=1, idempotent=True, values={"text": "sorry"}),
    fact.UndoFailed(step="build[0].make", attempt=1, category=Category.TRANSIENT, message="503", due=1_763_230_100_000),
    fact.UndoStarted(step="build[0].make", attempt=2, idempotent=True),
    fact.StepCompensated(step="build[0].make", how=How.EXECUTED),
    fact.RunCompensated(),
]
BROKEN: list[Event] = [
    beside.BreakerOpened(server="http:ci.example:443", failures=5, until=1_763_230_200_000, message="503"),
    beside.BreakerProbed(server="http:ci.example:443"),
    beside.BreakerClosed(server="http:ci.example:443"),
]
KEYED: list[Event] = [
    fact.RunStarted(
        definition="sha256:" + "6" * 64,
        workflow="told@1.0.0",
        goal="do it by hand",
        mode=Mode.RECORD,
        key="sha256:" + "7" * 64,
        asked="sha256:" + "8" * 64,
    ),
    fact.ActionRecorded(description="began", step="tag", outcome=Outcome.STARTED),
    fact.AttemptStarted(step="tag", attempt=1),
    fact.ActionRecorded(description="no rights", step="tag", outcome=Outcome.FAILED),
    fact.StepFailed(step="tag", category=Category.TOOL_ERROR, message="no rights"),
    fact.ActionRecorded(description="with rights", step="tag", outcome=Outcome.DONE, output={"name": "v1"}),
    fact.StepRetried(step="tag", reason="with rights"),
    fact.AttemptStarted(step="tag", attempt=2),
    fact.StepCompleted(step="tag", output={"name": "v1"}, proof=Proof.CLAIMED),
    fact.CompensationStarted(reason="wrong name", steps=("tag",)),
    fact.StepCompensated(step="tag", how=How.RECORDED, description="deleted it"),
    fact.RunCompensated(),
]
CLAIMED: list[Event] = [
    fact.RunStarted(definition="sha256:" + "9" * 64, workflow="written", key="sha256:" + "a" * 64, asked="sha256:0"),
    fact.StepHandedOut(step="write", agent="ann", until=1_763_230_900_000),
    fact.StepHandedOut(step="write", agent="bob", until=1_763_231_800_000),
    fact.OutputRefused(step="write", findings=({"rule": "type", "severity": "major"},)),
    fact.DecisionRecorded(decision="confirmed", reason="the user agreed", step="write"),
    fact.StepCompleted(step="write", output="text", proof=Proof.CLAIMED),
    fact.CompensationStarted(reason="a typo", steps=("write",)),
    fact.UndoStarted(step="write", attempt=1),
    fact.StepCompensated(step="write", how=How.BY_AGENT, description="gone", details={"output": 1}),
    fact.RunCompensated(),
]
REACHING: list[Event] = [
    fact.RunStarted(
        definition="sha256:" + "b" * 64, workflow="branched", pins={"git.create_branch": "sha256:" + "c" * 64}
    ),
    fact.ApprovalRequested(
        step="branch", digest="sha256:" + "d" * 64, text="git.create_branch is not what it was", about=About.TOOL
    ),
    fact.ApprovalGiven(step="branch", digest="sha256:" + "d" * 64, reason="I know"),
    fact.AttemptStarted(
        step="branch",
        attempt=1,
        effect=Effect.COMPENSATABLE,
        capture={"undo": {"tool": "git.delete_branch", "args": {"name": "{{ args.name }}"}, "idempotent": False}},
    ),
    fact.ApprovalRequested(
        step="branch",
        digest="sha256:2",
        text="Which base?",
        about=About.QUESTION,
        schema={"type": "object", "properties": {"base": {"type": "string"}}},
    ),
    fact.ApprovalGiven(step="branch", digest="sha256:2", reason="as usual", content={"base": "main"}),
    fact.AttemptStarted(step="branch", attempt=2, effect=Effect.COMPENSATABLE),
    fact.AttemptFailed(step="branch", attempt=2, category=Category.TRANSIENT, message="it died", took=31),
    fact.RetryScheduled(step="branch", attempt=3, due=1_763_230_000_900),
    fact.AttemptStarted(step="branch", attempt=3, effect=Effect.COMPENSATABLE),
    fact.ApprovalRequested(step="branch", digest="sha256:3", text="Sure?", about=About.QUESTION),
    fact.ApprovalRejected(step="branch", digest="sha256:3", reason="no need to ask"),
    fact.AttemptStarted(step="branch", attempt=4, effect=Effect.COMPENSATABLE),
    fact.StepCompleted(step="branch", output={"sha": "1f"}, took=250),
    fact.ApprovalRequested(step="push", digest="sha256:4", text="git.push is not what it was", about=About.TOOL),
    fact.ApprovalRejected(step="push", digest="sha256:4", reason="who changed it?"),
    fact.CompensationStarted(reason="push failed", steps=("branch",)),
    fact.UndoStarted(step="branch", attempt=1),
    fact.UndoFailed(
        step="branch", attempt=1, category=Category.TIMEOUT, message="30s", due=1_763_230_000_999, took=30_000
    ),
    fact.UndoStarted(step="branch", attempt=2),
    fact.StepCompensated(step="branch", how=How.EXECUTED, took=12),
    fact.RunCompensated(),
]
PINNED: list[Event] = [
    beside.PlanSaved(
        version=1,
        definition="sha256:" + "b" * 64,
        name="Branch",
        steps=2,
        pins={"git.create_branch": "sha256:" + "c" * 64},
    )
]
OVERRIDDEN: list[Event] = [
    fact.RunStarted(definition="sha256:" + "f" * 64, workflow="overridden"),
    fact.ApprovalRequested(step="go", digest="sha256:5", text="Publish?"),
    fact.ApprovalOverridden(step="go", reason="she is on a plane", digest="sha256:5", channel="terminal"),
    fact.StepSkipped(step="go", reason="she is on a plane"),
    fact.StepSkipped(step="test", reason="the machine is gone", was_gated=True),
    fact.StepCarried(step="notes", output="x", proof=Proof.CLAIMED, checks=("length",)),
    fact.RunCompleted(),
]
PROVEN: list[Event] = [
    fact.RunStarted(definition="sha256:" + "e" * 64, workflow="proven"),
    fact.StepHandedOut(step="mend"),
    fact.OutputRefused(
        step="mend",
        findings=({"rule": "tests_pass", "severity": "major", "where": "tests/test_a.py:3", "excerpt": "assert 0"},),
        evidence=({"rule": "tests_pass", "version": "1.0.0", "passed": False, "exit": 1, "took": 812},),
    ),
    fact.OutputRefused(step="mend", findings=({"rule": "tests_pass", "severity": "major"},)),
    fact.StepFailed(
        step="mend", category=Category.INVALID_INPUT, message="what was handed in was not accepted, 2 times", asks=True
    ),
    fact.StepRetried(step="mend", reason="once more"),
    fact.StepHandedOut(step="mend"),
    fact.StepCompleted(
        step="mend",
        output={"test": "tests/test_a.py"},
        checks=("tests_pass",),
        evidence=(
            {
                "rule": "tests_pass",
                "version": "1.0.0",
                "passed": True,
                "ran": ["pytest"],
                "digest": "sha256:" + "f" * 64,
                "tools": {"pytest": "9.2"},
                "counts": {"passed": 3},
            },
        ),
        findings=({"rule": "lint_clean", "severity": "minor", "where": "a.py:1", "message": "a long line"},),
    ),
    fact.AttemptStarted(step="publish", attempt=1, effect=Effect.COMPENSATABLE),
    fact.OutputRefused(step="publish", findings=({"rule": "equals", "severity": "major"},), output={"status": 500}),
    fact.AttemptFailed(step="publish", attempt=1, category=Category.TOOL_ERROR, message="not accepted", took=9),
    fact.StepFailed(step="publish", category=Category.TOOL_ERROR, message="not accepted"),
    fact.CompensationStarted(reason="publish failed", steps=("publish",)),
    fact.UndoStarted(step="publish", attempt=1),
    fact.StepCompensated(step="publish", how=How.EXECUTED),
    fact.RunCompensated(),
]
INTERRUPTED: list[Event] = [
    fact.RunStarted(definition="sha256:" + "0" * 63 + "1", workflow="interrupted"),
    fact.AttemptStarted(step="a", attempt=1, effect=Effect.COMPENSATABLE, idempotent=True),
    fact.StepCompleted(step="a", output={"made": "a.txt"}),
    fact.AttemptStarted(step="b", attempt=1, effect=Effect.COMPENSATABLE),
    fact.StepCompleted(step="b"),
    fact.AttemptStarted(step="c", attempt=1, effect=Effect.COMPENSATABLE),
    fact.StepCompleted(step="c"),
    fact.CompensationStarted(reason="d failed", steps=("c", "b", "a")),
    fact.UndoStarted(step="c", attempt=1, idempotent=True, capture={"path": "a.txt", "existed": True}),
    fact.UndoLost(step="c", attempt=1),
    fact.UndoStarted(step="c", attempt=2, idempotent=True),
    fact.StepCompensated(step="c", how=How.EXECUTED),
    fact.UndoStarted(step="b", attempt=1),
    fact.UndoBecameUncertain(step="b", attempt=1),
    fact.StepRetried(step="b", reason="it is still there"),
    fact.UndoStarted(step="b", attempt=2),
    fact.UndoFailed(step="b", attempt=2, category=Category.PERMISSION, message="locked", final=True),
    fact.RunCompensationFailed(steps=("b",), not_compensated=("a",)),
    fact.CompensationStarted(reason="unlocked", steps=("b", "a")),
    fact.UndoStarted(step="b", attempt=3),
    fact.UndoBecameUncertain(step="b", attempt=3),
    fact.StepSkipped(step="b", reason="it may stay"),
    fact.UndoStarted(step="a", attempt=1, idempotent=True),
    fact.UndoBecameUncertain(step="a", attempt=1),
    fact.StepCompensated(step="a", how=How.RECORDED, description="it is gone"),
    fact.RunCompensated(not_compensated=("b",)),
]
OWNED: list[Event] = [
    fact.RunStarted(definition="sha256:" + "2" * 64, workflow="gate", project="prj_golden22"),
    fact.RunAdopted(project="prj_golden33", reason="its project was forgotten"),
    fact.RunCancelled(reason="not needed"),
]
WAITED: list[Event] = [
    fact.RunStarted(definition="sha256:" + "2" * 64, workflow="gate"),
    fact.RunAdopted(project="prj_golden22", reason="started before runs had a project"),
]
SAVED: list[Event] = [
    beside.PlanSaved(version=1, definition="sha256:" + "3" * 64, name="Ship", steps=4, project="prj_golden22"),
]
OPENED: list[Event] = [
    beside.BreakerOpened(server="ci", failures=5, until=1_763_230_200_000, message="503"),
]
ASKED: list[Event] = [
    fact.RunStarted(definition="sha256:" + "6" * 64, workflow="gate", behalf="person:ada"),
    fact.ApprovalRequested(
        step="go",
        digest="sha256:a",
        text="Publish 1.2?",
        by=("leads",),
        expires=1_763_230_000_001,
        effects=(
            fact.EffectAhead(
                step="publish",
                title="Publish",
                tool="ci.publish",
                effect=Effect.COMPENSATABLE,
                has_undo=True,
                when="inputs.ok",
                args='{"version":"1.2"}',
            ),
        ),
        unshown=3,
        approvals=2,
        not_by="starter",
    ),
    fact.ApprovalGiven(step="go", digest="sha256:a", reason="fine", channel="terminal", missing=1),
    fact.ApprovalWithdrawn(step="go", digest="sha256:a", changed=("vars.version",)),
    fact.ApprovalRequested(step="go", digest="sha256:b", text="Publish 1.3?", expires=1_763_230_000_002),
    fact.ApprovalExpired(step="go", again=True),
    fact.ApprovalRequested(step="go", digest="sha256:c", text="Publish 1.3?"),
    fact.ApprovalGiven(step="go", digest="sha256:c", reason="ok", channel="elicitation:claude", behalf="person:ada"),
    fact.ApprovalRequested(step="stop", digest="sha256:d", text="Really?"),
    fact.ApprovalRejected(step="stop", digest="sha256:d", reason="no", channel="library", behalf="person:ada"),
]
BASED: list[Event] = [
    fact.RunStarted(definition="sha256:" + "7" * 64, workflow="fix"),
    fact.ProjectRecorded(
        commit="1" * 40,
        branch="main",
        tree="sha256:" + "8" * 64,
        dirty={"notes.txt": "9" * 32, "gone.txt": ""},
        more=3,
    ),
    fact.ProjectRecorded(step="mend"),
    fact.StepHandedOut(step="mend"),
    fact.StepCompleted(step="mend", output={"file": "a.py"}, proof=Proof.CHECKED, checks=("length",)),
    fact.ProjectRecorded(step="ship", commit="2" * 40),
    fact.RunCancelled(reason="not needed"),
]
UNCHECKED: list[Event] = [
    fact.RunStarted(definition="sha256:" + "7" * 64, workflow="fix"),
    fact.StepHandedOut(step="fix"),
    fact.OutputRefused(
        step="fix", findings=({"rule": "tests_pass", "message": "no pytest", "fixed_by": "person"},), unchecked=True
    ),
    fact.OutputRefused(step="fix", findings=({"rule": "length", "message": "too short"},)),
    fact.RunCancelled(reason="not needed"),
]
UNCOMPARED: list[Event] = [
    fact.RunStarted(definition="sha256:" + "7" * 64, workflow="fix"),
    fact.ProjectRecorded(commit="4" * 40, dirty={"a.py": "9" * 32}, missing="there was no repository then"),
    fact.ProjectRecorded(step="fix", missing="it could not be read"),
    fact.RunCancelled(reason="not needed"),
]
TRACED: list[Event] = [
    fact.RunStarted(
        definition="sha256:" + "9" * 64,
        workflow="traced",
        trace={
            "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "tracestate": "vendor=a1",
            "baggage": "team=blue",
        },
    ),
    fact.RunCancelled(reason="enough"),
]
JOURNALS: dict[str, dict[str, list[Event]]] = {
    "format-1": {
        "run_shipped2": SHIPPED,
        "run_undone22": UNDONE,
        "run_refused2": REFUSED,
        "run_left2222": LEFT,
        "plan/ship": PLANNED,
        "store": KEPT,
    },
    "format-1-b": {"run_forked22": FORKED, "server/http:ci.example:443": BROKEN},
    "format-1-c": {"run_keyed222": KEYED, "run_claimed2": CLAIMED},
    "format-1-d": {"run_reaching": REACHING, "plan/branch": PINNED},
    "format-1-e": {"run_proven22": PROVEN},
    "format-1-f": {"run_overrid2": OVERRIDDEN},
    "format-1-undo": {"run_broken22": INTERRUPTED},
    "format-1-projects": {
        "run_owned222": OWNED,
        "run_waited22": WAITED,
        "plan/prj_golden22/ship": SAVED,
        "server/prj_golden22/ci": OPENED,
    },
    "format-1-approvals": {"run_asked222": ASKED},
    "format-1-baselines": {"run_based222": BASED},
    "shared/format-1-restored": {"store": RESTORED},
    "shared/format-1-archives": {"store": RETAINED},
    "shared/format-1-nodes": {"store": SHARED},
    "checks/format-1-unchecked": {"run_unseen22": UNCHECKED},
    "checks/format-1-missing": {"run_hidden22": UNCOMPARED},
    "traces/format-1-traced": {"run_traced22": TRACED},
}


def records_of(streams: dict[str, list[Event]]) -> list[Record]:
    writer = record_writer(seed=FORMAT)
    written = [writer.write(Head(stream), events, actor=AGENT)[0] for stream, events in streams.items()]
    return [record for records in written for record in records]


def state_of(records: list[Record]) -> dict[str, object]:
    """What the journal folds to: the rows of each stream, and its head."""
    names = list(dict.fromkeys(record.stream for record in records))
    state: dict[str, object] = {}
    for name in names:
        own = [record for record in records if record.stream == name]
        change = change_of(name, map(entry_of, own))
        state[name] = {"head": own[-1].hash.hex(), "rows": msgspec.to_builtins(change)}
    return state


def main() -> int:
    missing = {name: streams for name, streams in JOURNALS.items() if not (HERE / f"{name}.jsonl").exists()}
    if not missing:
        sys.stderr.write("all of them exist, and golden journals are for ever\n")
        return 1
    for name, streams in missing.items():
        records = records_of(streams)
        lines = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
        (HERE / f"{name}.jsonl").write_bytes(lines)
        state = msgspec.json.format(msgspec.json.encode(state_of(records)), indent=1)
        (HERE / f"{name}.state.json").write_bytes(state + b"\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
