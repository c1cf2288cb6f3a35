"""Proof bundles on the command line: written from the store, and verified without one.

engine/proving/bundle_writer.py and engine/proving/bundle_check.py decide what a bundle contains and proves."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NoReturn

import click
import msgspec

from handrail.assembly.opening import open_reader, open_writer
from handrail.domain.errors import IntegrityBroken, Invalid, NotFound
from handrail.domain.journal.event import PLAN_PREFIX, RUN_PREFIX, SERVER_PREFIX, STORE_STREAM
from handrail.domain.journal.proof_bundle import BUNDLE_BYTES_MAX
from handrail.domain.plural import plural
from handrail.engine.proving.bundle_account import Account, ProofKind, ProvenStep, account_of
from handrail.engine.proving.bundle_check import check_bundle
from handrail.engine.proving.bundle_writer import make_bundle
from handrail.engine.proving.trusted_key import trusted
from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.interfaces.cli.words.answer import Exit, answer
from handrail.interfaces.cli.words.new_files import require_direct
from handrail.interfaces.cli.words.table import print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.pictures.caption import plain
from handrail.rules.files.tree import tree_digest
from handrail.settings import Settings

KEY_NOT_VERIFIED: Final = "the key itself is not verified: compare its fingerprint with its owner's, or give --key"
_STREAM: Final = re.compile(rf"{RUN_PREFIX}[0-9A-Za-z]+|{STORE_STREAM}|(?:{PLAN_PREFIX}|{SERVER_PREFIX}).+", re.DOTALL)


def is_bundle(name: str) -> bool:
    """Whether a name is that of a file rather than a stream; with `./` in front it is always a file."""
    return bool(name) and _STREAM.fullmatch(name) is None


async def write_bundle(settings: Settings, run: str, file: Path, *, as_json: bool) -> None:
    """Write the proof bundle of a run, and say what it proves."""
    require_direct(file, settings.project)
    async with open_reader(settings) as look:
        run = await look.ledger.stream_of(run, look.project.id)
        await look.ledger.of_stream(run, limit=1)  # don't create a store for a run that does not exist
    async with open_writer(settings) as handrail:
        checkpointer, store = handrail.checkpointer, handrail.reader.store
        await checkpointer.seal()  # so that a checkpoint covers the run's latest event
        data, proven = await make_bundle(
            store, handrail.reader.checkpoints, run, signer=checkpointer.signer, clock=checkpointer.clock
        )
    account = account_of(proven)
    with click.open_file(str(file), "wb", atomic=True) as target:
        target.write(data)

    def print_text() -> None:
        say(f"{file} proves {run}: {account.status.value} after {plural(account.events, 'event')}")
        say(f"signed by key {account.key}")
        say(f"verify it anywhere: handrail journal verify {file}")

    answer(
        {"bundle": str(file), "bytes": len(data), **msgspec.to_builtins(account)}, as_json=as_json, as_text=print_text
    )


async def verify_bundle(name: str, *, key: str, project: Path | None, as_json: bool) -> NoReturn:
    """Verify a proof bundle, print what it proves, and exit; with 7 if it is broken."""
    owner = trusted(key) if key else ""
    data = _content(Path(name))
    try:
        account = account_of(check_bundle(data, trusted=owner))
    except IntegrityBroken as error:
        _print_broken(name, error, as_json=as_json)
        sys.exit(Exit.INTEGRITY)
    same = await _same(account, project, Path(name)) if project is not None else None
    report: dict[str, Any] = {"ok": True, "bundle": name, "is_trusted": bool(owner), **msgspec.to_builtins(account)}
    if same is not None:
        report["same_project"] = same

    def print_text() -> None:
        print_account(account, is_trusted=bool(owner))
        if same is not None:
            say(_project_words(same))

    answer(report, as_json=as_json, as_text=print_text)
    sys.exit(Exit.OK)


async def _same(account: Account, project: Path, bundle: Path) -> list[str]:
    """The checks that saw exactly the files that are in this folder now; the bundle itself was made after them."""
    trees = {await tree_digest(project), await tree_digest(project, without=bundle)} - {""}
    return [
        f"{step.id}: {one.get('rule', '')}"
        for step in account.steps
        for one in step.evidence
        if one.get("tree") in trees
    ]


def _project_words(same: list[str]) -> str:
    if not same:
        return "the project's files have changed since they were checked"
    return f"the project's files are those that were checked by {plain(', '.join(same))}"


def _content(path: Path) -> bytes:
    try:
        return read_plain(path, bytes_max=BUNDLE_BYTES_MAX)
    except NotPlain as error:
        raise Invalid(str(error), hint="name the file of a proof bundle") from error
    except OSError as error:
        raise NotFound(
            f"there is no run, stream or file {str(path)!r}: {error.strerror}",
            hint="name a run (see `handrail run list`), or the file of a proof bundle",
        ) from error


def _print_broken(name: str, error: IntegrityBroken, *, as_json: bool) -> None:
    reason = plain(str(error))

    def print_text() -> None:
        say(f"INTEGRITY BROKEN: {name}: {reason}", fg="red", bold=True)
        say(f"  what to do: {error.hint}")

    answer({"ok": False, "bundle": name, "reason": reason, "hint": error.hint}, as_json=as_json, as_text=print_text)


def print_account(account: Account, *, is_trusted: bool) -> None:
    """Print what a bundle proves. Its texts are not trusted: control characters are removed."""
    state = account.status.value if account.has_ended else f"{account.status.value} (not ended)"
    say(f"{plain(account.run)} of {plain(account.workflow)}: {state}", bold=True)
    for line in _facts(account):
        say(f"  {plain(line)}")
    print_table(
        ("step", "status", "proof"), [(plain(step.id), step.status.value, _proof_of(step)) for step in account.steps]
    )
    for one in account.approvals:
        channel = f" ({plain(one.channel)})" if one.channel else ""
        say(f"{plain(one.step)}: approval {one.what} by {plain(one.by)}{channel} at {one.at}: {plain(one.words)}")
    for past in account.exceptions:
        kind = past.kind.value.replace("_", " ")
        say(f"{plain(past.step)}: {kind} by {plain(past.by)}: {plain(past.reason)}", fg="yellow")
    if account.not_undone:
        say(f"NOT undone: {plain(', '.join(account.not_undone))}", fg="yellow")
    _print_key(account.key, is_trusted=is_trusted)


def _print_key(key: str, *, is_trusted: bool) -> None:
    verified = f"bundle verified: signed by key {key}"
    say(f"{verified}, which you trust" if is_trusted else verified, fg="green")
    if not is_trusted:
        say(f"note: {KEY_NOT_VERIFIED}")


def _facts(account: Account) -> Iterable[str]:
    if account.goal:
        yield f"goal: {account.goal}"
    end = f", ended {account.ended}" if account.ended else ""
    yield f"started {account.started}{end}; {plural(account.events, 'event')}, bundled {account.made}"
    yield f"definition {account.definition}"
    if account.forked_from:
        yield f"forked from {account.forked_from}"
    if account.tools:
        yield f"pinned tools: {', '.join(account.tools)}"
    yield _sealed(account)
    if account.erased:
        yield f"erased: event {', '.join(map(str, account.erased))}; the hash chain is intact"


def _sealed(account: Account) -> str:
    if not account.checkpoint:
        return "no checkpoint covers it: only the bundle's signature does"
    form = "included" if account.has_checkpoint_itself else "by its digest"
    counted = f"{account.sealed} of {plural(account.events, 'event')}"
    return f"checkpoint {account.checkpoint} ({form}) covers {counted}"


def _proof_of(step: ProvenStep) -> str:
    """The proof that a step was done, refusals before it, and its undo."""
    if step.how is None:
        return plain(step.message)
    refused = f"not accepted {plural(step.refused, 'time')} before" if step.refused else ""
    undone = f"undone: {step.compensation}" if step.compensation else ""
    return plain("; ".join(filter(None, (_how(step, step.how), refused, undone))))


def _how(step: ProvenStep, how: ProofKind) -> str:
    if how in {ProofKind.VERIFIED, ProofKind.CHECKED}:
        return f"{how.value} by {', '.join(step.checks)}" + ("" if step.evidence else " (no evidence recorded)")
    if how is ProofKind.CARRIED:
        return "carried over from the forked run"
    return f"{how.value} by {step.by}"
