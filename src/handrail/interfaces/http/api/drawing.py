"""Graphs: the steps of a definition and their order, with their state in a run. Pure; the page lays them out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from handrail.domain.definition.model import (
    Approve,
    Call,
    Definition,
    Each,
    Effect,
    Prompt,
    Repeat,
    Step,
    Tool,
    title_of,
)
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_UNDOING
from handrail.domain.scheduling.compensation import undo_order
from handrail.engine.reading.step_view import StepView
from handrail.interfaces.http.contract.given.runs import Graph, GraphEdge, GraphNode
from handrail.interfaces.pictures.mermaid import mermaid_text

NODES_MAX: Final = 5_000
DEPTH_MAX: Final = 20


def graph_of(definition: Definition, effects: Mapping[str, Effect]) -> Graph:
    """The graph of a definition."""
    return _Drawing(definition, effects, {}, {}).graph(mermaid_text(definition))


def run_graph_of(run: Run, definition: Definition, effects: Mapping[str, Effect], steps: tuple[StepView, ...]) -> Graph:
    """The graph of a run: what it does and did, and the order in which it is or would be undone."""
    seen = {step.id: step for step in steps}
    undone = [path for path, state in run.steps.items() if state.compensation] if run.status in RUN_UNDOING else []
    undone.sort(key=lambda path: run.step(path).ended or 0)
    order = {path: place for place, path in enumerate([*undone, *undo_order(run, definition)], 1)}
    statuses = {step.id: run.step(step.id).status.value for step in definition.steps}
    return _Drawing(definition, effects, seen, order).graph(mermaid_text(definition, statuses))


class _Drawing:
    """Collects the nodes and edges of one definition."""

    def __init__(
        self,
        definition: Definition,
        effects: Mapping[str, Effect],
        seen: Mapping[str, StepView],
        order: Mapping[str, int],
    ) -> None:
        self.definition, self.effects, self.seen, self.order = definition, effects, seen, order
        self.nodes: list[GraphNode] = []
        self.edges: list[GraphEdge] = []
        self.is_cut = False

    def graph(self, mermaid: str) -> Graph:
        self._draw(self.definition.steps, "", "", 0)
        return Graph(nodes=tuple(self.nodes), edges=tuple(self.edges), is_cut=self.is_cut, mermaid=mermaid)

    def _draw(self, steps: tuple[Step, ...], prefix: str, parent: str, depth: int) -> None:
        known = {step.id for step in steps}
        for step in steps:
            if len(self.nodes) >= NODES_MAX or depth > DEPTH_MAX:
                self.is_cut = True
                return
            path = prefix + step.id
            self.nodes.append(self._node(step, path, parent))
            self.edges += [GraphEdge(source=prefix + name, target=path) for name in step.after if name in known]
            for inside in self._inside(step):
                self._draw(inside, f"{path}.", path, depth + 1)

    def _inside(self, step: Step) -> Iterator[tuple[Step, ...]]:
        """The body of a loop, or the steps of a workflow that was inlined when the run started."""
        if step.body:
            yield step.body
        elif isinstance(step.work, Call) and step.work.workflow in self.definition.pinned:
            yield self.definition.pinned[step.work.workflow].steps

    def _node(self, step: Step, path: str, parent: str) -> GraphNode:
        seen = self.seen.get(path)
        effect = step.effect
        if effect is None and isinstance(step.work, Tool):
            effect = self.effects.get(step.work.tool)
        return GraphNode(
            id=path,
            title=title_of(step),
            kind=step.kind.value,
            status=seen.status if seen else None,
            parent=parent,
            effect=effect,
            undo=step.undo is not None,
            undo_order=self.order.get(path, 0),
            attempts=seen.attempts if seen else 0,
            round=seen.round if seen else 0,
            rounds=seen.rounds if seen else 0,
            hand=_hand(step),
        )


def _hand(step: Step) -> str:
    """Who does a step."""
    match step.work:
        case Prompt():
            return "agent"
        case Approve():
            return "person"
        case Tool():
            return "handrail"
        case Each() | Repeat() | Call():
            return ""
