"""shell.run: off until allowed, what it takes and gives, what a command's end means, and how it is configured."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.definition.model import Category, Effect
from handrail.domain.errors import Invalid
from handrail.engine.sandbox import Bounds
from handrail.tools.python.function_tool import FunctionTool
from handrail.tools.sandbox.syscall_filter import MACHINES, filter_program
from handrail.tools.shell import ShellConfiguration, command_flaws, shell_configuration, shell_tools
from handrail.tools.vault import Vault
from outside.debian import bubblewrap
from tools.calls import Fails, call_of

Make = Callable[..., FunctionTool]
ALLOW, EPERM, ENOSYS, FAMILY, KILL = 0x7FFF0000, 0x50001, 0x50026, 0x50061, 0x80000000


@pytest.fixture
def made(tmp_path: Path) -> Make:
    project = tmp_path / "project"
    project.mkdir()

    def make(**table: Any) -> FunctionTool:
        configuration = shell_configuration({"shell": table})
        (tool,) = shell_tools(project, configuration, private=[tmp_path / "home"])
        return tool

    return make


async def run(tool: FunctionTool, *argv: str, **args: Any) -> Any:
    return await tool.call(call_of("shell.run", {"argv": list(argv), **args}))


async def test_it_is_off_until_a_person_allows_it(made: Make) -> None:
    with Fails(Category.PERMISSION, "shell.run is off here; only a person can allow commands"):
        await run(made(), "true")


def test_only_the_home_names_the_program_of_the_sandbox() -> None:
    own, others = {"shell": {"bubblewrap": "/own/bwrap"}}, {"shell": {"bubblewrap": "/project/bwrap"}}
    assert shell_configuration(own, home_tables=own).bubblewrap == "/own/bwrap"
    assert shell_configuration({"shell": {"allow": True}}, home_tables={}).bubblewrap == ""
    for home_tables in ({}, own):
        with pytest.raises(Invalid, match="bubblewrap can't be set by a project"):
            shell_configuration(others, home_tables=home_tables)


async def test_without_a_sandbox_it_may_not_be_used(made: Make) -> None:
    with Fails(Category.PERMISSION, "can't be used here: /nowhere/bwrap was not found"):
        await run(made(allow=True, bubblewrap="/nowhere/bwrap"), "true")


@pytest.fixture
def tool(made: Make) -> FunctionTool:
    return made(allow=True, bubblewrap=str(bubblewrap()), timeout="300ms", output="10KB", memory="64MiB", processes=8)


async def test_a_command_is_run_and_its_words_come_back(tool: FunctionTool, tmp_path: Path) -> None:
    (tmp_path / "project" / "sub").mkdir()
    found = await run(tool, "sh", "-c", "cat; echo $A; pwd", stdin="in ", cwd="sub", env={"A": "$(id)"})
    assert found == {"exit": 0, "stdout": f"in $(id)\n{tmp_path / 'project' / 'sub'}\n", "stderr": ""}
    assert (tool.spec.effect, tool.spec.timeout) == (Effect.IRREVERSIBLE, "5300ms")


async def test_another_exit_than_expected_fails_with_the_last_words(tool: FunctionTool) -> None:
    code = "for n in 1 2 3 4 5 6 7; do echo line $n >&2; done; exit 3"
    with Fails(Category.TOOL_ERROR, "exit 3:\nline 3\nline 4\nline 5\nline 6\nline 7"):
        await run(tool, "sh", "-c", code)
    with Fails(Category.TOOL_ERROR, "exit 4:\nout"):
        await run(tool, "sh", "-c", "echo out; exit 4", expect=[0, 3])
    assert (await run(tool, "sh", "-c", "exit 3", expect=[3]))["exit"] == 3


@pytest.mark.parametrize(
    ("code", "category", "words"),
    [
        ("sleep 60", Category.TIMEOUT, "stopped after 300ms; ask a person if it needs a larger"),
        ("yes", Category.TOOL_ERROR, "more than 10,000 bytes; ask a person if it needs a larger"),
        ("for n in 1 2 3 4 5 6 7 8 9; do sleep 60 & done; wait", Category.TOOL_ERROR, "more than 8 processes"),
    ],
)
async def test_a_bound_that_is_passed_is_named(code: str, category: Category, words: str, tool: FunctionTool) -> None:
    with Fails(category, words):
        await run(tool, "sh", "-c", code)


async def test_too_much_memory_is_named(made: Make) -> None:
    tool = made(allow=True, bubblewrap=str(bubblewrap()), memory="32MiB", read=[sys.base_prefix])
    code = "import time\na = []\nwhile True:\n    a.append(bytes([1]) * 100_000)\n    time.sleep(0.001)"
    with Fails(Category.TOOL_ERROR, "more than 33,554,432 bytes of memory"):
        await run(tool, str(Path(sys.executable).resolve()), "-I", "-S", "-c", code)


async def test_secrets_are_filled_in_at_the_call(made: Make) -> None:
    vault = Vault(environment={"GOOD": "s3cret-word", "BAD": "s3\0cret"}, allowed_env=["GOOD", "BAD"])
    tool = replace(made(allow=True, bubblewrap=str(bubblewrap())), vault=vault)

    async def counted(name: str) -> Any:
        args = {"argv": ["sh", "-c", "printenv KEY | wc -c; printenv KEY"], "env": {"KEY": f"${{env:{name}}}"}}
        return await tool.call(call_of("shell.run", args, references=(("env", "KEY"),)))

    assert (await counted("GOOD"))["stdout"] == "12\n[redacted]\n", "it was there, and is not told"
    with Fails(Category.INVALID_INPUT, "NUL"):
        await counted("BAD")


async def test_a_secret_never_becomes_an_argument_of_a_command(made: Make) -> None:
    vault = Vault(environment={"API_KEY": "s3cret-word"}, allowed_env=["API_KEY"])
    tool = replace(made(allow=True), vault=vault)
    args = {"argv": ["echo", "${env:API_KEY}"]}
    with Fails(Category.PERMISSION, "`${env:API_KEY}` can't be in `argv`"):
        await tool.call(call_of("shell.run", args, references=(("argv", 1),)))


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"argv": []},
        {"argv": "ls -la"},
        {"argv": [""]},
        {"argv": ["a\0b"]},
        {"argv": [1]},
        {"argv": ["x"] * 1_001},
        {"argv": ["x" * 32_001]},
        {"argv": ["x" * 32_000] * 20},
        {"argv": ["ls"], "cwd": ".."},
        {"argv": ["ls"], "cwd": "/etc"},
        {"argv": ["ls"], "env": {"A=B": "x"}},
        {"argv": ["ls"], "env": {"": "x"}},
        {"argv": ["ls"], "env": {"A": "x\0y"}},
        {"argv": ["ls"], "env": {f"A{n}": "" for n in range(101)}},
        {"argv": ["ls"], "stdin": "x" * 1_000_001},
        {"argv": ["ls"], "expect": []},
        {"argv": ["ls"], "expect": [256]},
        {"argv": ["ls"], "shell": True},
    ],
)
async def test_a_command_that_could_mean_harm_is_refused_before_it_is_run(args: dict[str, Any], made: Make) -> None:
    with Fails(Category.INVALID_INPUT):
        await made(allow=True, bubblewrap="/nowhere/bwrap").call(call_of("shell.run", args))


def test_the_projects_own_folder_is_a_place_to_start() -> None:
    assert command_flaws({"argv": ["ls"], "cwd": "."}) == command_flaws({"argv": ["ls"], "cwd": "a/b"}) == []


def test_configuration_is_read_with_its_bounds() -> None:
    assert shell_configuration({}) == ShellConfiguration()
    assert ShellConfiguration().bounds() == Bounds()
    found = shell_configuration(
        {"shell": {"allow": True, "timeout": "5m", "memory": "2GiB", "output": "2MB", "read": ["/opt", "~/x"]}}
    )
    bounds = found.bounds()
    assert (bounds.time_ms, bounds.memory_bytes, bounds.output_bytes) == (300_000, 2_147_483_648, 2_000_000)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (True, "[shell] is not a table"),
        ({"alow": True}, "unknown key `alow`"),
        ({"allow": "yes"}, "$.allow"),
        ({"timeout": "5 minutes"}, "$.timeout"),
        ({"timeout": "0s"}, "timeout is not between"),
        ({"timeout": "2d"}, "timeout is not between"),
        ({"memory": "1G"}, "$.memory"),
        ({"memory": "1MiB"}, "memory is less than 16MiB"),
        ({"output": "1GB"}, "output is more than 100MB"),
        ({"processes": 0}, "$.processes"),
        ({"read": "/opt"}, "$.read"),
        ({"read": ["opt"]}, "read contains `opt`"),
    ],
)
def test_invalid_configuration_is_refused(table: Any, words: str) -> None:
    with pytest.raises(Invalid) as refused:
        shell_configuration({"shell": table})
    assert words in str(refused.value)
    assert refused.value.hint


def judged(machine: str, call: int, *arguments: int, name: int | None = None) -> int:
    """What the kernel would answer: its little machine, in a few lines."""
    data = struct.pack(
        "=IIQ6Q", call, MACHINES[machine].name if name is None else name, 0, *arguments, *[0] * (6 - len(arguments))
    )
    program = list(struct.iter_unpack("=HBBI", filter_program(machine)))
    place, held = 0, 0
    while True:
        operation, if_so, if_not, value = program[place]
        place += 1
        match operation:
            case 0x20:
                (held,) = struct.unpack_from("=I", data, value)
            case 0x06:
                return int(value)
            case _:
                holds = {0x15: held == value, 0x25: held > value, 0x35: held >= value, 0x45: bool(held & value)}
                place += if_so if holds[operation] else if_not


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_refuses_what_it_should_and_nothing_else(machine: str) -> None:
    known = MACHINES[machine]
    assert {judged(machine, number) for number in known.refused.values()} == {EPERM}
    assert {judged(machine, number) for number in known.absent.values()} == {ENOSYS}
    assert judged(machine, 0) == judged(machine, 1) == ALLOW
    assert judged(machine, 0, name=0x40000003) == KILL
    assert judged(machine, 0x40000000 | 1) == ENOSYS
    assert [judged(machine, known.socket, family) for family in (1, 2, 10, 16, 17, 38, 40)] == [ALLOW] * 4 + [
        FAMILY
    ] * 3
    assert [judged(machine, known.clone, flags) for flags in (0x01200011, 0x10000011)] == [ALLOW, EPERM]
    assert [judged(machine, known.ioctl, 0, request) for request in (0x5401, 0x5412, 0x541C)] == [ALLOW, EPERM, EPERM]
    assert [judged(machine, known.shmget, 0, size) for size in (56, 4_097, 1 << 33)] == [ALLOW, EPERM, EPERM]
    for number, place in known.modes.values():
        assert [judged(machine, number, *[0] * place, mode) for mode in (0o755, 0o4755, 0o2755)] == [
            ALLOW,
            EPERM,
            EPERM,
        ]
    for number, place in known.opens.values():
        before = [0] * place
        assert judged(machine, number, *before, 0x40, 0o6755) == EPERM
        assert judged(machine, number, *before, 0x0, 0o6755) == ALLOW  # the mode is whatever lay there
        assert judged(machine, number, *before, 0x40, 0o755) == ALLOW
