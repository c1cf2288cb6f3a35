"""The same steps on LangGraph over SQLite, run by an interpreter that has LangGraph installed (see bench/engines.py).

    python -m bench.peers.langgraph_steps --shape pure --runs 200 --steps 10 --db FILE

A run is a thread, a step one turn of a node, with durability="sync": a turn's checkpoint is written before the next
starts. The saver sets WAL itself; synchronous=FULL is SQLite's own default."""

from __future__ import annotations

import asyncio
import operator
import uuid
from argparse import Namespace
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from bench.peers.floor import ONE_RUN, WARM_RUNS, WARM_STEPS, Clock, Spent, at_once, command_line, report


class Turn(TypedDict):
    """What a thread of steps in turn keeps: the newest output only, which is the kindest to its checkpoints."""

    steps: int
    output: dict[str, Any]


class Fan(TypedDict):
    """What a thread of steps side by side keeps: all outputs."""

    steps: int
    outputs: Annotated[list[dict[str, Any]], operator.add]


async def step(state: Turn) -> dict[str, Any]:
    return {"output": {"number": state["output"]["number"] + 1, "ok": True}}


async def leaf(state: dict[str, Any]) -> dict[str, Any]:
    return {"outputs": [{"number": state["number"], "ok": True}]}


def in_turn(saver: AsyncSqliteSaver) -> Any:
    graph = StateGraph(Turn)
    graph.add_node("step", step)
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: "step" if state["output"]["number"] < state["steps"] else END)
    return graph.compile(checkpointer=saver)


def side_by_side(saver: AsyncSqliteSaver) -> Any:
    graph = StateGraph(Fan)
    graph.add_node("leaf", leaf)
    graph.add_conditional_edges(START, lambda state: [Send("leaf", {"number": at}) for at in range(state["steps"])])
    graph.add_edge("leaf", END)
    return graph.compile(checkpointer=saver)


async def do(graph: Any, shape: str, runs: int, steps: int) -> None:
    """The work of one shape.

    `effect` is `pure` here: the checkpoint before a turn names the node that comes next, which is as near to an intent
    as LangGraph comes. That the node started, and how often, is not recorded: after a crash it is simply run again."""

    async def one() -> None:
        config = {"configurable": {"thread_id": uuid.uuid4().hex}, "recursion_limit": steps + 5}
        start = {"steps": steps, "outputs": []} if shape == "fanout" else {"steps": steps, "output": {"number": 0}}
        await graph.ainvoke(start, config, durability="sync")

    await at_once(1 if shape in ONE_RUN else runs, one)


async def engine(options: Namespace) -> Spent:
    async with AsyncSqliteSaver.from_conn_string(str(options.db)) as saver:
        graph = side_by_side(saver) if options.shape == "fanout" else in_turn(saver)
        await do(graph, options.shape, WARM_RUNS, WARM_STEPS)
        clock = Clock()
        await do(graph, options.shape, options.runs, options.steps)
        return clock.spent()


if __name__ == "__main__":
    chosen = command_line(__doc__).parse_args()
    report(chosen, asyncio.run(engine(chosen)))
