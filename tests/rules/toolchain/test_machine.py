"""What is found on a machine as developers have it: shims are passed by, caches are shown, secrets are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handrail.engine.sandbox import Job
from handrail.rules.files.project import ProjectFiles
from handrail.rules.tests_pass import tests_pass
from handrail.rules.toolchain.installed.installation import interpreter_of, needs_of
from handrail.rules.toolchain.installed.nodes import node_of
from handrail.rules.toolchain.installed.python_environment import Python
from handrail.rules.toolchain.installed.pythons import pythons
from handrail.rules.toolchain.installed.shims import OnPath, machine_programs, past_shim
from handrail.rules.toolchain.site import Site, site_at
from rules.on_project import write
from rules.toolchain.workshop import Scripted, made, program, scripted


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "home" / "bin"))
    names = (
        "PYENV_ROOT PYENV_VERSION VIRTUAL_ENV CONDA_PREFIX XDG_DATA_HOME NVM_DIR FNM_DIR VOLTA_HOME CARGO_HOME "
        "GOPATH GOMODCACHE GRADLE_USER_HOME ASDF_DATA_DIR MISE_DATA_DIR COREPACK_HOME RUSTUP_HOME PYTHONUSERBASE"
    )
    for name in names.split():
        monkeypatch.delenv(name, raising=False)
    return made(tmp_path / "home", {"work/README.md": ""})


def site(home: Path) -> Site:
    return site_at(ProjectFiles(home / "work"))


async def first_job(home: Path) -> Job:
    sandbox = Scripted()
    await tests_pass.apply({}, scripted(home / "work", sandbox))
    job: Job = sandbox.jobs[0]
    return job


@pytest.mark.parametrize(
    ("place", "named"),
    [
        (".nvm/versions/node/v20.1.0/bin", {".nvmrc": "v20\n"}),
        (".local/share/fnm/node-versions/v20.1.0/installation/bin", {".node-version": "20.1.0"}),
        (".volta/tools/image/node/20.1.0/bin", {"package.json": '{"volta": {"node": "20.1.0"}}'}),
        (".local/share/mise/installs/node/20.1.0/bin", {".nvmrc": "20.1"}),
        (".asdf/installs/nodejs/20.1.0/bin", {".nvmrc": "20.1.0"}),
    ],
)
def test_the_node_that_the_project_names_is_found(home: Path, place: str, named: dict[str, str]) -> None:
    program(home / "bin", "node")
    assert node_of(site(home)) == OnPath(home / "bin" / "node")
    write(home / "work", named)
    assert node_of(site(home)) == OnPath(home / "bin" / "node")
    real = program(home / place, "node")
    found = node_of(site(home))
    assert found is not None
    assert found.path == real
    assert found.why.startswith(f"{next(iter(named))} names 20")


@pytest.mark.parametrize("text", ["lts/*", "", "20/../..", '{"volta": 3}', '{"volta": {"node": 3}}', "{"])
def test_a_version_that_is_none_is_passed_by(home: Path, text: str) -> None:
    node = program(home / "bin", "node")
    write(home / "work", {".nvmrc": text, "package.json": text})
    assert node_of(site(home)) == OnPath(node)


def test_a_volta_shim_leads_to_its_default(home: Path) -> None:
    shim = program(home / ".volta" / "bin", "volta-shim")
    (home / ".volta" / "bin" / "npm").symlink_to(shim)
    npm = home / ".volta" / "bin" / "npm"
    assert past_shim(npm) is None
    write(home / ".volta" / "tools" / "user", {"platform.json": '{"node": {"runtime": "20.1.0"}}'})
    real = program(home / ".volta" / "tools" / "image" / "node" / "20.1.0" / "bin", "npm")
    assert past_shim(npm) == OnPath(real, "volta: its default is 20.1.0")
    pinned = program(home / ".volta" / "tools" / "image" / "node" / "18.2.0" / "bin", "npm")
    write(home / "work", {"package.json": '{"volta": {"node": "18.2.0"}}'})
    assert past_shim(npm, [home / "work"]) == OnPath(pinned, "volta: package.json pins 18.2.0")


def test_a_shim_of_asdf_leads_to_the_version_that_is_named_and_else_path_goes_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim, plain = program(home / ".asdf" / "shims", "python3"), program(home / "bin", "python3")
    monkeypatch.setenv("PATH", f"{shim.parent}::{plain.parent}")
    assert list(machine_programs("python3", [home / "work"])) == [OnPath(plain)]
    real = program(home / ".asdf" / "installs" / "python" / "3.12.1" / "bin", "python3")
    write(home / "work", {".tool-versions": "# all\nnodejs 20\npython 3.12.1 system # mine\n"})
    wanted = OnPath(real, "asdf or mise: .tool-versions names 3.12.1")
    assert list(machine_programs("python3", [home / "work"])) == [wanted, OnPath(plain)]
    monkeypatch.setenv("PATH", f"/{'x' * 300}:{os.environ['PATH']}")  # the system refuses to look there
    assert list(machine_programs("python3", [home / "work"])) == [wanted, OnPath(plain)]
    assert list(machine_programs("a/b")) == []


def test_the_tool_chain_of_the_project_comes_before_the_default_of_rustup(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rustup = program(home / "bin", "rustup")
    cargo = home / "bin" / "cargo"
    cargo.symlink_to(rustup)
    chains = home / ".rustup" / "toolchains"
    default, named, own = (program(chains / f"{name}-linux" / "bin", "cargo") for name in ("stable", "1.70", "nightly"))
    settings = f'default_toolchain = "stable-linux"\n[overrides]\n"{home}/other" = "nightly-linux"\n'
    write(home / ".rustup", {"settings.toml": settings})
    assert past_shim(cargo, [home / "work"]) == OnPath(default, "rustup: it is the default")
    assert past_shim(cargo, [home / "other"]) == OnPath(own, "rustup: it is set for this folder")
    write(home / "work", {"rust-toolchain.toml": '[toolchain]\nchannel = "1.70"\n'})
    assert past_shim(cargo, [home / "work"]) == OnPath(named, "rustup: rust-toolchain.toml names it")
    monkeypatch.setenv("RUSTUP_TOOLCHAIN", "nightly")
    assert past_shim(cargo, [home / "work"]) == OnPath(own, "rustup: RUSTUP_TOOLCHAIN names it")
    write(home / ".rustup", {"settings.toml": "not toml ["})
    monkeypatch.delenv("RUSTUP_TOOLCHAIN")
    assert past_shim(cargo) == OnPath(cargo)


async def test_cargo_reads_what_was_downloaded_and_never_the_credentials(home: Path) -> None:
    program(home / "bin", "cargo")
    program(home / "bin", "rustc")
    write(home, {".cargo/registry/x": "", ".cargo/credentials.toml": "", ".cargo/config.toml": "[net]\n"})
    write(home / "work", {"Cargo.toml": ""})
    job = await first_job(home)
    assert job.env["CARGO_HOME"] == str(home / ".cargo")
    assert set(job.shows) >= {home / ".cargo" / "registry", home / ".cargo" / "config.toml"}
    assert home / ".cargo" not in job.shows
    write(home, {".cargo/config.toml": '[registries.mine]\ntoken = "x"\n'})
    assert home / ".cargo" / "config.toml" not in (await first_job(home)).shows


async def test_go_reads_the_modules_of_the_machine(home: Path) -> None:
    program(home / "bin", "go")
    write(home / "work", {"go.mod": "module a\n"})
    assert "GOMODCACHE" not in (await first_job(home)).env
    write(home, {"go/pkg/mod/x": ""})
    job = await first_job(home)
    assert job.env["GOMODCACHE"] == str(home / "go" / "pkg" / "mod")
    assert home / "go" / "pkg" / "mod" in job.shows


async def test_maven_reads_the_local_repository_and_not_the_settings(home: Path) -> None:
    program(home / "bin", "mvn")
    java = program(home / "jdk" / "bin", "java")
    write(home, {"jdk/release": "", "jdk/lib/modules": "", ".m2/settings.xml": "", ".m2/repository/x": ""})
    (home / "bin" / "java").symlink_to(java)
    write(home / "work", {"pom.xml": ""})
    job = await first_job(home)
    assert f"-Dmaven.repo.local={home}/.m2/repository" in job.argv
    assert job.env["JAVA_HOME"] == str(home / "jdk")
    assert set(job.shows) >= {home / ".m2" / "repository", home / "jdk"}
    assert home / ".m2" not in job.shows


async def test_the_gradle_that_a_wrapper_has_downloaded_is_used_itself(home: Path) -> None:
    program(home / "work", "gradlew")
    url = "distributionUrl=https\\://services.gradle.org/distributions/gradle-8.5-bin.zip\n"
    write(home / "work", {"build.gradle": "", "gradle/wrapper/gradle-wrapper.properties": url})
    assert str(home / "work" / "gradlew") in (await first_job(home)).argv
    real = program(home / ".gradle/wrapper/dists/gradle-8.5-bin/abc/gradle-8.5/bin", "gradle")
    write(real.parent.parent, {"lib/plugins/x": ""})
    write(home, {".gradle/caches/modules-2/x": "", ".gradle/gradle.properties": "password=1"})
    job = await first_job(home)
    assert str(real) in job.argv
    assert job.env["GRADLE_USER_HOME"].startswith("/tmp/")  # it writes there, and the home folder can't be written
    assert job.env["GRADLE_RO_DEP_CACHE"] == str(home / ".gradle" / "caches")
    assert home / ".gradle" / "caches" / "modules-2" in job.shows


@pytest.mark.parametrize(
    ("files", "programs", "wanted"),
    [
        (
            {"package.json": '{"workspaces": ["a"]}', "a/package.json": '{"scripts": {"test": "gulp"}}'},
            ["npm"],
            "npm run --silent test",
        ),
        ({"package.json": '{"scripts": {"test": "pnpm unit"}}'}, ["npm", "pnpm"], "npm test --silent"),
    ],
)
async def test_scripts_that_are_not_understood_are_run_by_the_package_manager(
    home: Path, files: dict[str, str], programs: list[str], wanted: str
) -> None:
    for name in ("node", *programs):
        program(home / "bin", name)
    write(home, {".local/share/pnpm/store/x": ""})
    write(home / "work", files)
    job = await first_job(home)
    assert " ".join([Path(job.argv[0]).name, *job.argv[1:]]) == wanted
    assert job.cwd == ("a" if "a/package.json" in files else "")
    assert home / ".local" / "share" / "pnpm" / "store" in job.shows
    assert str(home / "bin") in job.env["PATH"]


def test_a_script_needs_its_interpreter_and_a_lone_program_only_itself(home: Path) -> None:
    alone = program(home / "bin", "alone")
    assert alone in needs_of(alone)
    assert home / "bin" not in needs_of(alone)
    python = program(home / "env" / "bin", "python3")
    write(home / "env", {"pyvenv.cfg": ""})
    long = made(home / "scripts", {"x": f'#!/bin/sh\n\'\'\'exec\' "{python}" "$0" "$@"\n'}) / "x"
    assert interpreter_of(long) == python
    assert home / "env" in needs_of(long)
    made(home / ".local" / "lib" / "python3.12", {"os.py": ""})
    own = program(home / ".local" / "bin", "python3.12")
    assert home / ".local" not in needs_of(own)
    assert set(needs_of(own)) >= {home / ".local" / "bin", home / ".local" / "lib"}


def test_environments_of_conda_and_of_named_versions_are_found_in_order(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conda = program(home / "miniconda3" / "envs" / "calc" / "bin", "python")
    write(conda.parent.parent, {"conda-meta/x": ""})
    pinned = program(home / ".pyenv" / "versions" / "3.12.4" / "bin", "python3")
    program(home / ".pyenv" / "versions" / "3.12.1" / "bin", "python3")
    active = program(home / "envs" / "x" / "bin", "python3")
    write(active.parent.parent, {"pyvenv.cfg": ""})
    monkeypatch.setenv("VIRTUAL_ENV", str(home / "envs" / "x"))
    write(home / "work", {"environment.yml": "name: calc\n", ".python-version": "3.12\n", "pyproject.toml": "not ["})
    found = list(pythons(site(home)))
    assert [one.path for one in found[:3]] == [active, conda, pinned]
    assert all(one.is_own for one in found)
    monkeypatch.setenv("PATH", str(program(home / "bin", "python3").parent))
    assert [one.is_own for one in pythons(site(home))][-1] is False


def test_the_interpreter_of_a_pytest_on_path_is_the_last_choice(home: Path) -> None:
    python = program(home / "tool" / "bin", "python")
    script = made(home / "bin", {"pytest": f"#!{python}\n"}) / "pytest"
    script.chmod(0o755)
    [found] = pythons(site(home))
    assert (found.path, found.is_own) == (python, False)
    made(home / "tool" / "bin", {"pytest": f"#!{python}\n"})
    assert Python(path=python, why="").has("pytest")


def test_an_environment_with_the_packages_of_its_base_has_both(home: Path) -> None:
    base = program(home / "base" / "bin", "python3.12")
    write(home / "base" / "lib" / "python3.12", {"os.py": "", "site-packages/theirs.py": ""})
    write(home / ".local" / "lib" / "python3.12" / "site-packages", {"mine.py": ""})
    write(home / "env", {"pyvenv.cfg": "include-system-site-packages = true\n"})
    write(home / "env" / "lib" / "python3.12" / "site-packages", {"own/__init__.py": "", "own-1.2.dist-info/x": ""})
    (home / "env" / "bin").mkdir()
    (home / "env" / "bin" / "python").symlink_to(base)
    python = Python(path=home / "env" / "bin" / "python", why="")
    assert [python.has(name) for name in ("own", "theirs", "mine", "other")] == [True, True, True, False]
    assert python.version_of("own") == "1.2"
    assert python.version_of("theirs") == ""
    write(home / "env", {"pyvenv.cfg": ""})
    assert [python.has(name) for name in ("own", "theirs", "mine")] == [True, False, False]
