"""Shims: small programs on PATH that start the real one, chosen by files of the project or the user's home folder.

In a sandbox a shim finds none of these files, so the real program is looked up here, as the shim would: pyenv, rustup,
volta, asdf, mise. A shim whose program can't be found is passed over."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from handrail.rules.toolchain.installed.installation import text_of

PYTHON_NAME: Final = re.compile(r"^(?:python|pip|pytest|ruff|flake8|coverage|tox|nox)")
TOOLS: Final = {"node": "nodejs", "npm": "nodejs", "npx": "nodejs", "go": "golang", "gofmt": "golang"}
"""The names that asdf has for what provides a program; python and others are their own."""
VERSIONS_MAX: Final = 5
VOLTA_TOOLS: Final = frozenset({"npm", "pnpm", "yarn"})
"""What volta installs apart from Node."""

_version = re.compile(r"^v?\d{1,4}(?:\.\d{1,6}){0,3}[\w.+-]{0,40}$")
_channel = re.compile(r'^\s*channel\s*=\s*"([\w.+-]{1,100})"', re.MULTILINE)


class OnPath(Struct, frozen=True):
    """A real program that PATH leads to."""

    path: Path
    why: str = ""
    """Whose shim chose it; empty if it is on PATH itself."""


def machine_programs(name: str, above: Sequence[Path] = ()) -> Iterator[OnPath]:
    """The programs of that name that PATH leads to, in its order; `above` are the folders of the project, innermost
    first, whose files say which version is wanted."""
    if not name or os.sep in name:
        return
    folders = filter(None, os.environ.get("PATH", os.defpath).split(os.pathsep))
    programs = (Path(folder, name).absolute() for folder in folders)
    # Asked in this order: a folder of PATH that we may not enter has no programs for us, and is no error.
    real = (past_shim(path, above) for path in programs if os.access(path, os.X_OK) and path.is_file())
    yield from filter(None, real)


def past_shim(path: Path, above: Sequence[Path] = ()) -> OnPath | None:
    """The program itself, or what its shim would start; None for a shim that would start nothing known."""
    real = path.resolve()
    if real.name == "rustup":
        return _rustup(path, above)
    if real.name == "volta-shim":
        return _first("volta", _volta(path.name, above))
    if path.parent.name != "shims":
        return OnPath(path)
    if path.parent.parent in {pyenv_root(), pyenv_root() / "plugins" / "pyenv-virtualenv"}:
        return _first("pyenv", _pyenv(path.name, above))
    return _first("asdf or mise", _asdf(path.name, above))


def _first(manager: str, candidates: Iterator[tuple[Path, str]]) -> OnPath | None:
    for path, why in candidates:
        if os.access(path, os.X_OK):
            return OnPath(path, f"{manager}: {why}")
    return None


def pyenv_root() -> Path:
    """Where pyenv has its versions."""
    return _folder("PYENV_ROOT", ".pyenv")


def version_folders(tool: str, version: str) -> Iterator[Path]:
    """The installations of a version, or of the newest one that it is the start of."""
    if not re.fullmatch(r"[\w.+-]{1,100}", version) or set(version) <= {"."}:
        return
    data = _folder("XDG_DATA_HOME", ".local/share")
    if tool == "python":
        yield from _matching(pyenv_root() / "versions", version)
        uv = _folder("UV_PYTHON_INSTALL_DIR", data / "uv" / "python")
        yield from _newest(uv.glob(f"cpython-{version}-*"), uv.glob(f"cpython-{version}.*"))
    if tool == "node":
        yield from _matching(_folder("NVM_DIR", ".nvm") / "versions" / "node", version)
        yield from _matching(_volta_home() / "tools" / "image" / "node", version)
        fnm = _matching(_folder("FNM_DIR", data / "fnm") / "node-versions", version)
        yield from (folder / "installation" for folder in fnm)
    yield from _matching(_folder("ASDF_DATA_DIR", ".asdf") / "installs" / TOOLS.get(tool, tool), version)
    yield from _matching(_folder("MISE_DATA_DIR", data / "mise") / "installs" / tool, version)


def _folder(variable: str, default: str | Path) -> Path:
    """A folder that a variable names; by default one of the user's home folder."""
    return Path(os.environ.get(variable) or Path.home() / default)


def _matching(base: Path, version: str) -> Iterator[Path]:
    bare = version.removeprefix("v")
    exact = [base / name for name in (version, bare, f"v{bare}") if (base / name).is_dir()]
    yield from exact[:1] or _newest(base.glob(f"{bare}.*"), base.glob(f"v{bare}.*"))


def _newest(*found: Iterator[Path]) -> list[Path]:
    every = [path for some in found for path in some if path.is_dir()]
    return sorted(every, key=_numbers, reverse=True)[:VERSIONS_MAX]


def _numbers(path: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d{1,9}", path.name)[:4])


def _pyenv(name: str, above: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    root = pyenv_root()
    folders = (*above, *(above[-1].parents if above else ()))
    files = [*(folder / ".python-version" for folder in folders), root / "version"]
    named = os.environ.get("PYENV_VERSION", "").replace(":", " ")
    where, text = "PYENV_VERSION", named
    if not named:
        where, text = next(((path.name, found) for path in files if (found := text_of(path)).strip()), ("", ""))
    for version in text.split()[:VERSIONS_MAX]:
        for folder in _matching(root / "versions", version):
            yield folder / "bin" / name, f"{where} names {version}"


def _asdf(name: str, above: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    tool = "python" if PYTHON_NAME.match(name) else {"npm": "node", "npx": "node", "gofmt": "go"}.get(name, name)
    for folder in (*above, Path.home()):
        for version in _tool_versions(text_of(folder / ".tool-versions"), {tool, TOOLS.get(tool, tool)}):
            for installed in version_folders(tool, version):
                yield installed / "bin" / name, f".tool-versions names {version}"


def _tool_versions(text: str, names: set[str]) -> Iterator[str]:
    lines = [line.split("#")[0].split() for line in text.splitlines()[:100]]
    yield from (version for words in lines if words and words[0] in names for version in words[1:])


def _volta_home() -> Path:
    return _folder("VOLTA_HOME", ".volta")


def _volta(name: str, above: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    images = _volta_home() / "tools" / "image"
    for table, words in _volta_tables(above):
        for tool in dict.fromkeys((name if name in VOLTA_TOOLS else "node", "node")):
            pinned = table.get(tool)
            if isinstance(pinned, str) and _version.match(pinned):
                yield images / tool / pinned / "bin" / name, f"{words} {pinned}"


def _volta_tables(above: Sequence[Path]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """What chooses versions of Node and its managers: the project's files, then the user's defaults."""
    for folder in above:
        yield _table(_json(folder / "package.json").get("volta")), "package.json pins"
    platform = _json(_volta_home() / "tools" / "user" / "platform.json")
    node = _table(platform.get("node"))
    yield {**platform, "node": node.get("runtime"), "npm": node.get("npm")}, "its default is"


def _json(path: Path) -> Mapping[str, Any]:
    try:
        return _table(msgspec.json.decode(text_of(path, 1_000_000)))
    except (msgspec.DecodeError, RecursionError):
        return {}


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def rustup_home() -> Path:
    """Where rustup has its tool chains."""
    return _folder("RUSTUP_HOME", ".rustup")


def _rustup(path: Path, above: Sequence[Path]) -> OnPath:
    """The program of the tool chain that rustup would choose; its shim itself if none is installed."""
    home = rustup_home()
    for chosen, why in _toolchains(home, above):
        folders = [home / "toolchains" / chosen, *sorted((home / "toolchains").glob(f"{chosen}-*"))]
        for folder in folders:
            if os.access(folder / "bin" / path.name, os.X_OK):
                return OnPath(folder / "bin" / path.name, f"rustup: {why}")
    return OnPath(path)


def _toolchains(home: Path, above: Sequence[Path]) -> Iterator[tuple[str, str]]:
    try:
        settings = tomllib.loads(text_of(home / "settings.toml", 1_000_000))
    except tomllib.TOMLDecodeError:
        settings = {}
    overrides = _table(settings.get("overrides"))
    candidates = [(os.environ.get("RUSTUP_TOOLCHAIN", ""), "RUSTUP_TOOLCHAIN names it")]
    for folder in above:
        candidates.append((str(overrides.get(str(folder), "")), "it is set for this folder"))
        for name in ("rust-toolchain.toml", "rust-toolchain"):
            text = text_of(folder / name)
            channel = _channel.search(text)
            candidates.append((channel[1] if channel else text.strip(), f"{name} names it"))
    candidates.append((str(settings.get("default_toolchain", "")), "it is the default"))
    yield from ((name, why) for name, why in candidates if re.fullmatch(r"[\w.+-]{1,100}", name))
