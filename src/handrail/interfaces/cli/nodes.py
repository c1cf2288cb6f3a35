"""`handrail nodes`: who executes runs on this store, what they do, and what waits for one; pause and resume a node."""

from __future__ import annotations

import click

from handrail.assembly.opening import open_reader, open_writer
from handrail.domain.fleet.label import in_words
from handrail.domain.fleet.node import NodeState
from handrail.domain.plural import plural
from handrail.engine.fleet.node_table import pause_node
from handrail.engine.reading.node_view import NodesView, NodeView, node_view
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.own_command import advise
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.pictures.caption import plain


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
@reports_errors
async def command(ctx: click.Context, as_json: bool) -> None:
    """List the nodes: who executes runs on this store, and what waits for one.

    With --json, `waiting` is the number of ready runs that no node has taken, and `by_label` the same by what they
    need: what an autoscaler asks for."""
    if ctx.invoked_subcommand:
        return
    async with open_reader(settings_of(ctx)) as look:
        found = await look.nodes()
    data = listing("nodes", found.nodes, waiting=found.waiting, by_label=found.by_label)
    answer(data, as_json=as_json, as_text=lambda: _print(found))


@command.command()
@click.argument("node")
@json_option
@click.pass_context
@reports_errors
async def pause(ctx: click.Context, node: str, as_json: bool) -> None:
    """Let NODE take no more runs, also after a restart; what it works on goes on. NODE is an id, or a name."""
    await _change(ctx, node, is_paused=True, as_json=as_json)


@command.command()
@click.argument("node")
@json_option
@click.pass_context
@reports_errors
async def resume(ctx: click.Context, node: str, as_json: bool) -> None:
    """Let NODE take runs again."""
    await _change(ctx, node, is_paused=False, as_json=as_json)


async def _change(ctx: click.Context, node: str, *, is_paused: bool, as_json: bool) -> None:
    async with open_writer(settings_of(ctx)) as writer:
        store = writer.reader.store
        changed = await pause_node(store.nodes(), node, actor=person(), is_paused=is_paused)
    view = node_view(changed)
    what = "is paused: it takes no more runs" if is_paused else "takes runs again"
    answer(view, as_json=as_json, as_text=lambda: say(f"{view.id} {what}"))


def _print(found: NodesView) -> None:
    if found.nodes:
        head = ("node", "name", "state", "slots", "labels", Column("beat", 1), Column("version", 3))
        print_table(head, [_cells(one) for one in found.nodes])
    else:
        advise("no nodes: nothing executes runs here; `handrail worker` does")
    for one in found.by_label:
        what = f"a node with {in_words(one.needs)}" if one.needs else "a node"
        waits = "waits" if one.runs == 1 else "wait"
        say(f"{plural(one.runs, 'run')} {waits} for {what}; {one.nodes or 'none'} up", err=True)


def _cells(one: NodeView) -> tuple[object, ...]:
    paused = f"paused by {one.paused_by}" if one.paused_by else ""
    state = paused if one.state is NodeState.PAUSED else ", ".join(filter(None, (one.state.value, paused)))
    slots = f"{one.used}/{one.slots}" if one.slots else f"{one.used}"
    labels = ", ".join(one.labels) or "-"
    beat = "-" if one.state is NodeState.DOWN else f"{one.beat_ms / 1_000:.1f} s"
    return one.id, plain(one.name), plain(state), slots, plain(labels), beat, one.version
