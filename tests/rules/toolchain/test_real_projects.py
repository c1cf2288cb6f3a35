"""Real projects in seven languages, with real tool chains in the real sandbox: every rule says the right thing."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.engine.checking.rule import Setting
from outside.nodejs import installed
from outside.toolchains import of_machine, toolchains
from rules.on_project import write
from rules.toolchain.projects import SAMPLES, Sample, equip
from rules.toolchain.workshop import PYTHON_HOME, in_sandbox, judged, made

if not sys.platform.startswith("linux"):
    pytest.skip("tool chains were not tried: the sandbox needs Linux", allow_module_level=True)

from handrail.rules.compiles import compiles
from handrail.rules.lint_clean import lint_clean
from handrail.rules.tests_pass import tests_pass
from handrail.rules.toolchain.program import of_machine as program_of

RULES = (compiles, tests_pass, lint_clean)
SETTINGS_OF_JAVA = tuple(Path("/etc").glob("java-*-openjdk"))


class Yard:
    """One project of a language, to be broken and mended."""

    def __init__(self, sample: Sample, project: Path, setting: Setting, parameters: dict[str, Any]) -> None:
        self.sample, self.project, self.setting, self.parameters = sample, project, setting, parameters

    async def lay(self, files: Any) -> None:
        write(self.project, {**self.sample.good, **files})

    async def found(self, rule: Any) -> list[str]:
        outcome = await judged(rule, self.setting, **self.parameters)
        assert outcome.evidence is not None, outcome
        return [f"{one.where}: {one.message}" for one in outcome.findings]


@pytest.fixture(params=SAMPLES)
def yard(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    sample, chains = SAMPLES[request.param], toolchains()
    for name in sample.needs:
        of_machine(name)
    if request.param == "java" and not chains.junit:
        pytest.skip("not tried: JUnit could not be fetched")
    node = installed("the tool chains of JavaScript")
    folders = [PYTHON_HOME / "bin", chains.go / "bin", node.program.parent]
    monkeypatch.setenv("PATH", ":".join([*map(str, folders), os.environ["PATH"]]))
    project = made(tmp_path / "calc", sample.good)
    parameters = equip(project, request.param, chains)
    cargo = program_of("cargo")
    read = [PYTHON_HOME, chains.folder, node.folder, *SETTINGS_OF_JAVA, *([cargo.folder] if cargo else [])]
    return Yard(sample, project, in_sandbox(project, *read), parameters)


async def test_a_project_is_judged_by_its_own_tools_and_a_broken_one_is_reported_where(yard: Yard) -> None:
    for rule in RULES:
        assert await yard.found(rule) == [], rule.card.name
    for rule, files, place in zip(
        RULES, (yard.sample.broken, yard.sample.failing, yard.sample.untidy), yard.sample.places, strict=True
    ):
        await yard.lay(files)
        found = await yard.found(rule)
        assert found, rule.card.name
        assert found[0].startswith(f"{place}: "), (rule.card.name, found)
    await yard.lay({})
    outcome = await judged(tests_pass, yard.setting, **yard.parameters)
    assert outcome.evidence is not None
    assert outcome.evidence.counts["tests"] == outcome.evidence.counts["passed"] == 1
    assert {name for name, version in outcome.evidence.tools.items() if version} >= set(yard.sample.tools)
    assert outcome.evidence.exit == 0
    assert outcome.evidence.took > 0
    assert outcome.evidence.ran
