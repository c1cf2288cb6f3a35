"""Node, its managers, and the caches of Go and Cargo, as developers have them: found and used in the real sandbox.

Node, Go and Cargo are real. The layouts of nvm, fnm, volta, corepack and Yarn's Plug'n'Play are made by hand, as these
make them (corepack 0.34, Yarn 4.18): what they download is a script of ours here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from handrail.rules.compiles import compiles
from handrail.rules.files.project import project_at
from handrail.rules.tests_pass import tests_pass
from handrail.rules.toolchain.installed.caches import linked_packages
from handrail.rules.toolchain.installed.shims import past_shim
from handrail.rules.toolchain.site import site_at
from outside.debian import bubblewrap
from outside.nodejs import installed
from outside.toolchains import of_machine, toolchains
from rules.on_project import committed, write
from rules.toolchain.workshop import judged, made

if not sys.platform.startswith("linux"):
    pytest.skip("environments were not tried: the sandbox needs Linux", allow_module_level=True)

from rules.toolchain.environments import by_default

VARIABLES = ("NVM_DIR", "FNM_DIR", "VOLTA_HOME", "COREPACK_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "PNPM_HOME")
MOCHA = {"stats": {"tests": 1, "passes": 1, "failures": 0, "pending": 0}, "passes": [{"fullTitle": "adds"}]}
GO_TEST = """package calc

import (
	"os"
	"testing"

	"example.com/dep"
)

func TestOne(t *testing.T) {
	if _, err := os.Stat(os.Getenv("GOCACHE") + "/00/mark"); err != nil || dep.One() != 1 {
		t.Fatal(err)
	}
}
"""
PNPM = "#!/usr/bin/env node\nconsole.log(process.argv.slice(2).join(' ') + ': 2 passed');\n"


def test_packages_behind_a_link_are_shown_and_no_other_folder_is(tmp_path: Path) -> None:
    project, elsewhere = made(tmp_path / "project", {"package.json": "{}"}), tmp_path / "store" / "node_modules"
    elsewhere.mkdir(parents=True)
    (project / "node_modules").symlink_to(elsewhere)
    assert linked_packages(site_at(project_at(project, ()))) == (elsewhere,)
    (project / "node_modules").unlink()
    (project / "node_modules").symlink_to(tmp_path)
    assert linked_packages(site_at(project_at(project, ()))) == ()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home folder, and no Node on PATH."""
    for needed in (bubblewrap, toolchains, lambda: installed("managers of Node")):
        needed()  # while the machine's own PATH is there
    folder = tmp_path / "home"
    (folder / "bin").mkdir(parents=True)
    for name in ("sh", "env", "dirname", "sed", "uname"):
        (folder / "bin" / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", str(folder / "bin"))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return folder


def node_at(folder: Path) -> Path:
    """A real installation of Node at that place, by a link."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(installed("a Node of a version manager").program.parent.parent)
    return folder / "bin" / "node"


async def chosen(project: Path) -> str:
    outcome = await judged(compiles, by_default(project))
    assert outcome.findings == ()
    assert outcome.evidence is not None
    return outcome.evidence.chosen["node"]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({".nvmrc": "20\n"}, ".nvmrc names 20"),
        ({".nvmrc": "lts/*  # the newest\n"}, ".nvmrc names 20.11.1"),
        ({".nvmrc": "lts/iron"}, ".nvmrc names 20.11.1"),
        ({".nvmrc": "node"}, ".nvmrc names 20.11.1"),
        ({".nvmrc": "../secret"}, "nvm: its default is 20.11"),
        ({}, "nvm: its default is 20.11"),
    ],
)
async def test_the_node_of_nvm_is_found_by_every_name_that_it_knows(
    home: Path, tmp_path: Path, files: dict[str, str], why: str
) -> None:
    node = node_at(home / ".nvm" / "versions" / "node" / "v20.11.1")
    aliases = {"default": "20.11\n", "lts/*": "lts/iron\n", "lts/iron": "v20.11.1\n", "loop": "loop\n"}
    write(home / ".nvm" / "alias", aliases)
    write(home / ".nvm", {"secret": "20.11.1"})
    assert await chosen(made(tmp_path / "calc", {"package.json": "{}", "a.js": "", **files})) == f"{node} ({why})"


async def test_the_node_of_fnm_is_found(home: Path, tmp_path: Path) -> None:
    fnm = home / ".local" / "share" / "fnm"
    node = node_at(fnm / "node-versions" / "v20.11.1" / "installation")
    (fnm / "aliases").mkdir()
    (fnm / "aliases" / "default").symlink_to(node.parent.parent)
    project = made(tmp_path / "calc", {"package.json": "{}", "a.js": ""})
    assert await chosen(project) == f"{fnm}/aliases/default/bin/node (fnm: its default)"
    write(project, {".node-version": "v20.11\n"})
    assert await chosen(project) == f"{node} (.node-version names 20.11)"


async def test_a_shim_of_volta_is_passed_by(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    volta = home / ".volta"
    node = node_at(volta / "tools" / "image" / "node" / "20.11.1")
    for name in ("npm", "pnpm", "yarn"):
        write(volta / "tools/image" / name / "1.2.3" / "bin", {name: "#!/bin/sh\n"})
        (volta / "tools/image" / name / "1.2.3" / "bin" / name).chmod(0o755)
    write(volta, {"bin/volta-shim": "#!/bin/sh\nexit 9\n"})
    for name in ("node", "npm", "pnpm", "yarn"):
        (volta / "bin" / name).symlink_to("volta-shim")
    (volta / "bin" / "volta-shim").chmod(0o755)
    write(volta, {"tools/user/platform.json": '{"node": {"runtime": "20.11.1", "npm": null}, "yarn": "1.2.3"}'})
    monkeypatch.setenv("PATH", f"{volta / 'bin'}:{home / 'bin'}")
    project = made(tmp_path / "calc", {"package.json": "{}", "a.js": ""})
    assert await chosen(project) == f"{node} (volta: its default is 20.11.1)"
    assert past_shim(volta / "bin" / "pnpm", [project]) is None, "it has no pnpm, and Node brings none"
    write(project, {"package.json": '{"volta": {"node": "20.11.1", "pnpm": "1.2.3"}}'})
    assert await chosen(project) == f"{node} (package.json names 20.11.1)"
    for name, image in (("pnpm", "pnpm/1.2.3"), ("yarn", "yarn/1.2.3"), ("npm", "node/20.11.1")):
        found = past_shim(volta / "bin" / name, [project])
        assert found is not None
        assert found.path == volta / "tools" / "image" / image / "bin" / name


async def test_the_pnpm_that_corepack_has_downloaded_is_run_and_not_its_shim(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = installed("corepack").program
    write(home / "lib/node_modules/corepack/dist", {"pnpm.js": "throw new Error('a shim was run');\n"})
    (home / "lib/node_modules/corepack/dist/pnpm.js").chmod(0o755)
    (home / "bin/pnpm").symlink_to("../lib/node_modules/corepack/dist/pnpm.js")
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{node.parent}")
    cache = home / ".cache/node/corepack/v1/pnpm"
    record = json.dumps({"locator": {"name": "pnpm"}, "bin": {"pnpm": "./bin/pnpm.cjs"}})
    for version in ("9.1.0", "10.2.0"):
        write(cache / version, {".corepack": record, "bin/pnpm.cjs": PNPM})
    project = made(tmp_path / "work", {"a.test.js": "require('node:test').test('a', () => {});\n"})
    for pinned, version, why in (
        ("", "10.2.0", "corepack has downloaded it"),
        ("pnpm@9.1.0+sha512.abc", "9.1.0", "corepack: package.json pins 9.1.0"),
    ):
        scripts = {"scripts": {"test": "pnpm generate && node --test"}}
        write(project, {"package.json": json.dumps({**scripts, **({"packageManager": pinned} if pinned else {})})})
        outcome = await judged(tests_pass, by_default(project))
        assert outcome.findings == ()
        assert outcome.evidence is not None
        assert outcome.evidence.counts["passed"] == 1
        assert outcome.evidence.chosen["pnpm"] == f"{cache}/{version}/bin/pnpm.cjs ({why})"
        assert "generate: 2 passed" in outcome.evidence.excerpt


async def test_a_record_of_corepack_can_not_name_a_file_elsewhere(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{installed('corepack').program.parent}")
    write(home, {"diary.js": "console.log('2 passed');\n"})
    record = json.dumps({"bin": {"pnpm": "../../../../../../diary.js"}})
    write(home / ".cache/node/corepack/v1/pnpm/9.1.0", {".corepack": record})
    files = {"package.json": '{"packageManager": "pnpm@9.1.0"}', "pnpm-workspace.yaml": "", "a.js": ""}
    [found] = (await judged(tests_pass, by_default(made(tmp_path / "work", files)))).findings
    assert found.unapplied


async def test_a_runner_that_yarn_keeps_in_an_archive_is_started_by_yarn(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{installed('yarn').program.parent}")
    refuses = "if (process.argv.slice(2, 4).join(' ') !== 'run mocha') process.exit(9);\n"
    target = "process.argv.find((word) => word.startsWith('output=')).slice('output='.length)"
    yarn = f"{refuses}require('fs').writeFileSync({target}, JSON.stringify({json.dumps(MOCHA)}));\n"
    package = '{"scripts": {"test": "mocha"}, "devDependencies": {"mocha": "1"}}'
    files = {"package.json": package, ".pnp.cjs": "", ".yarnrc.yml": "yarnPath: .yarn/releases/yarn-4.0.0.cjs\n"}
    project = made(tmp_path / "work", {**files, ".yarn/releases/yarn-4.0.0.cjs": yarn, "test/a.js": ""})
    outcome = await judged(tests_pass, by_default(project))
    assert outcome.findings == ()
    assert outcome.evidence is not None
    assert outcome.evidence.counts["passed"] == 1
    assert outcome.evidence.chosen["mocha"].endswith("yarn-4.0.0.cjs (by yarn: the project has no node_modules)")
    write(tmp_path, {"elsewhere.cjs": yarn})
    write(project, {".yarnrc.yml": "yarnPath: ../elsewhere.cjs\n"})
    [found] = (await judged(tests_pass, by_default(project))).findings
    assert found.message == "there is no mocha here"


async def test_modules_and_what_go_has_built_before_are_read_without_a_setting(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chains = toolchains()
    monkeypatch.setenv("PATH", f"{chains.go / 'bin'}:/usr/bin:/bin")
    proxy = tmp_path / "proxy" / "example.com" / "dep" / "@v"
    mod = "module example.com/dep\n\ngo 1.20\n"
    write(proxy, {"list": "v1.0.0\n", "v1.0.0.info": '{"Version": "v1.0.0"}', "v1.0.0.mod": mod})
    with zipfile.ZipFile(proxy / "v1.0.0.zip", "w") as archive:
        archive.writestr("example.com/dep@v1.0.0/go.mod", mod)
        archive.writestr("example.com/dep@v1.0.0/dep.go", "package dep\n\nfunc One() int { return 1 }\n")
    test = GO_TEST
    files = {"go.mod": "module example.com/calc\n\ngo 1.20\n\nrequire example.com/dep v1.0.0\n", "calc_test.go": test}
    project = made(tmp_path / "calc", {**files, "calc.go": "package calc\n"})
    asking = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=mod",
        "GONOSUMDB": "*",
    }
    go = [str(chains.go / "bin" / "go"), "mod", "tidy"]
    subprocess.run(
        go, cwd=project, env={**asking, "GOPROXY": f"file://{tmp_path / 'proxy'}", "GONOSUMCHECK": "1"}, check=True
    )
    assert (home / "go" / "pkg" / "mod" / "example.com").is_dir()
    built = home / ".cache" / "go-build"
    shutil.rmtree(built, ignore_errors=True)
    shutil.copytree(chains.go_cache, built, copy_function=os.link)
    write(built, {"00/mark": ""})
    before = sorted(built.rglob("*"))
    outcome = await judged(tests_pass, by_default(project))
    assert outcome.findings == ()
    assert sorted(built.rglob("*")) == before
    assert outcome.evidence is not None
    assert outcome.evidence.counts["passed"] == 1
    subprocess.run([chains.go / "bin" / "go", "clean", "-modcache"], cwd=project, env=asking, check=True)


async def test_a_crate_in_cargo_s_cache_is_read_without_a_setting(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cargo = of_machine_before(monkeypatch, "cargo")
    dep = {"Cargo.toml": '[package]\nname = "dep"\nversion = "1.0.0"\nedition = "2021"\n'}
    source = committed(tmp_path / "dep", {**dep, "src/lib.rs": "pub fn one() -> i32 {\n    1\n}\n"})
    package = '[package]\nname = "calc"\nversion = "1.0.0"\nedition = "2021"\n'
    toml = f'{package}[dependencies]\ndep = {{ git = "file://{source}" }}\n'
    test = "#[test]\nfn adds() {\n    assert_eq!(dep::one(), 1);\n}\n"
    project = made(tmp_path / "calc", {"Cargo.toml": toml, "src/lib.rs": test})
    monkeypatch.setenv("CARGO_HOME", str(home / ".cargo"))
    subprocess.run([cargo, "fetch"], cwd=project, check=True, capture_output=True)
    assert (home / ".cargo" / "git" / "checkouts").is_dir()
    outcome = await judged(tests_pass, by_default(project))
    assert outcome.findings == ()
    assert outcome.evidence is not None
    assert outcome.evidence.counts["passed"] == 1


def of_machine_before(monkeypatch: pytest.MonkeyPatch, name: str) -> Path:
    """A program of this machine, with the PATH and the settings that it was installed with."""
    usual = Path("~root" if os.geteuid() == 0 else "~").expanduser() / ".cargo" / "bin"
    monkeypatch.setenv("PATH", f"{usual}:/usr/local/bin:/usr/bin:/bin")
    monkeypatch.setenv("RUSTUP_HOME", os.environ.get("RUSTUP_HOME") or str(usual.parent.parent / ".rustup"))
    return of_machine(name)
