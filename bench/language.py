"""How fast is the authors' language? Expressions and templates: compile once at load, evaluate or render often.

Templates are measured beside minijinja on the same text and values, taking turns, in CPU time.
Run: python bench/language.py"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Final

import minijinja

from handrail.domain.json import Json
from handrail.domain.language.expression import compile_condition
from handrail.domain.language.shape import ANY
from handrail.domain.language.template import compile_template

REPEATS: Final = 15
BATCH_S: Final = 0.02

SCOPE: Final = {"inputs": ANY, "steps": ANY, "vars": ANY}
VALUES: Final[dict[str, Json]] = {
    "inputs": {"env": "prod", "version": "1.2.0", "targets": ["linux", "macos", "windows"], "score": 0.82},
    "steps": {"lint": {"status": "completed", "output": {"warnings": 3}}},
    "vars": {"owner": "ada"},
}
CONDITION: Final = (
    'inputs.env == "prod" and len(inputs.targets) > 2 and steps.lint.status == "completed" and inputs.score >= 0.8'
)
ONE_NAME: Final = "Write the release notes for {{ inputs.version }}.\n"
PROMPT: Final = (
    "# Release {{ inputs.version }} by {{ vars.owner | title }}\n"
    "{% for target in inputs.targets %}- {{ loop.index }}. {{ target | upper }}\n{% endfor %}"
    "{% if steps.lint.output.warnings > 2 and steps.lint.status == 'completed' %}Fix the warnings."
    "{% elif inputs.env == 'prod' %}Take care.{% else %}Go on.{% endif %}\n" + "Keep the change small. " * 20
)


def main() -> None:
    condition = compile_condition(CONDITION, SCOPE)
    assert condition.evaluate(VALUES) is True
    compiling, evaluating = measured(lambda: compile_condition(CONDITION, SCOPE), lambda: condition.evaluate(VALUES))
    print(f"{'CPU time, median of ' + str(REPEATS):34}{'compile':>12}{'use':>12}")
    print(row("condition of four comparisons", compiling, evaluating))
    for title, source in (("template with one name", ONE_NAME), ("prompt with loop, if and filters", PROMPT)):
        compare(title, source)


def compare(title: str, source: str) -> None:
    """Print our figures for a template, then minijinja's."""
    template = compile_template(source, SCOPE)
    peer = minijinja.Environment(templates={"one": source}, undefined_behavior="strict", keep_trailing_newline=True)
    assert template.render(VALUES) == peer.render_template("one", **VALUES)
    ours_compiling, ours_rendering, peer_compiling, peer_rendering = measured(
        lambda: compile_template(source, SCOPE),
        lambda: template.render(VALUES),
        lambda: minijinja.Environment().add_template("one", source),
        lambda: peer.render_template("one", **VALUES),
    )
    print(row(title, ours_compiling, ours_rendering))
    print(row("  minijinja", peer_compiling, peer_rendering))


def measured(*actions: Callable[[], object]) -> list[float]:
    """The CPU time of each action in microseconds; the actions take turns, so that a slow moment hits all."""
    counts = [batch_size(action) for action in actions]
    times = [[batch_us(action, count) for action, count in zip(actions, counts, strict=True)] for _ in range(REPEATS)]
    return [statistics.median(each) for each in zip(*times, strict=True)]


def batch_size(action: Callable[[], object]) -> int:
    count = 1
    while batch_us(action, count) * count < BATCH_S * 1e6:
        count *= 2
    return count


def batch_us(action: Callable[[], object], count: int) -> float:
    start = time.process_time_ns()
    for _ in range(count):
        action()
    return (time.process_time_ns() - start) / count / 1_000


def row(title: str, compiling_us: float, using_us: float) -> str:
    return f"{title:34}{compiling_us:9.1f} µs{using_us:9.2f} µs"


if __name__ == "__main__":
    main()
