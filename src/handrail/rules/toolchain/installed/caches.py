"""Caches: where the package managers of this machine keep what they have downloaded, for all projects.

Commands in the sandbox have no network and another home folder: variables say where these are."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from handrail.domain.secrets.secret_forms import looks_secret
from handrail.rules.toolchain.installed.installation import is_installation, text_of
from handrail.rules.toolchain.site import Site

PACKAGES: Final = "node_modules"
NODE_STORES: Final = (
    ".local/share/pnpm/store",
    ".pnpm-store",
    ".yarn/berry",
    ".cache/node/corepack",
    ".local/share/pnpm/global",
)
"""Where pnpm, yarn and corepack keep packages, relative to the home folder."""

GO_PARTS: Final = 256
"""How many folders Go's cache has."""
SAMPLED: Final = 4
"""How many of them are counted to know about how many files there are."""
GO_FILES_MAX: Final = 60_000

_token = re.compile(r"^\s*(?:token|secret-key|password)\s*=", re.MULTILINE)
_local_repository = re.compile(r"<localRepository>([^<]{1,500})</localRepository>")
_maven_url = re.compile(r"^distributionUrl=.*?/(apache-maven-[\w.+-]{1,60})-bin\.(?:zip|tar\.gz)\s*$", re.MULTILINE)
_gradle_url = re.compile(r"^distributionUrl=.*?/(gradle-[\w.+-]{1,60})-(?:bin|all)\.zip\s*$", re.MULTILINE)


class PackageCache(Struct, frozen=True, kw_only=True):
    """The variables and places with which a command finds what was downloaded."""

    env: Mapping[str, str] = field(default_factory=dict)
    shows: tuple[Path, ...] = ()


def cargo_cache() -> PackageCache:
    """Cargo's registries and checkouts, and its settings if there is no token in them; never its credentials."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    if not home.is_dir():
        return PackageCache()
    settings = [home / name for name in ("config.toml", "config")]
    harmless = [path for path in settings if path.is_file() and not _has_secret(path)]
    folders = [folder for folder in (home / "registry", home / "git") if folder.is_dir()]
    return PackageCache(env={"CARGO_HOME": str(home)}, shows=(*folders, *harmless))


def _has_secret(path: Path) -> bool:
    text = text_of(path)
    return bool(_token.search(text) or looks_secret(text))


def go_cache() -> PackageCache:
    """Go's modules."""
    path = os.environ.get("GOPATH", "").split(os.pathsep)[0] or str(Path.home() / "go")
    modules = Path(os.environ.get("GOMODCACHE") or Path(path) / "pkg" / "mod")
    return PackageCache(env={"GOMODCACHE": str(modules)}, shows=(modules,)) if modules.is_dir() else PackageCache()


def go_builds() -> Path | None:
    """What Go has built before, unless there is so much that linking it takes longer than building."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "go-build"
    folder = Path(os.environ.get("GOCACHE") or cache)
    parts = [folder / f"{number:02x}" for number in range(SAMPLED)]
    found = [sum(1 for _ in part.iterdir()) for part in parts if part.is_dir()]
    return folder if found and sum(found) * GO_PARTS // SAMPLED <= GO_FILES_MAX else None


def maven_repository() -> Path | None:
    """Maven's local repository: where the user's settings put it, else in the home folder."""
    named = _local_repository.search(text_of(_maven_home() / "settings.xml"))
    moved = Path(named[1].strip().replace("${user.home}", str(Path.home()))) if named else None
    folder = moved if moved and moved.is_absolute() and moved.is_dir() else _maven_home() / "repository"
    return folder if folder.is_dir() else None


def maven_of_wrapper(properties: str) -> Path | None:
    """The Maven that a project's wrapper has downloaded: the wrapper itself would download it again."""
    named = _maven_url.search(properties)
    if named is None:
        return None
    dists = _maven_home() / "wrapper" / "dists"
    found = [*dists.glob(f"{named[1]}-bin/*/{named[1]}"), *dists.glob(f"{named[1]}/*")]
    return next((folder / "bin" / "mvn" for folder in sorted(found) if is_installation(folder)), None)


def _maven_home() -> Path:
    return Path.home() / ".m2"


def gradle_cache() -> PackageCache:
    """Gradle's dependencies: it reads them from a folder that it does not change."""
    caches = _gradle_home() / "caches"
    if not (caches / "modules-2").is_dir():
        return PackageCache()
    return PackageCache(env={"GRADLE_RO_DEP_CACHE": str(caches)}, shows=(caches / "modules-2",))


def gradle_of_wrapper(properties: str) -> Path | None:
    """The Gradle that a project's wrapper has downloaded: the wrapper itself would download it again."""
    named = _gradle_url.search(properties)
    if named is None:
        return None
    found = (_gradle_home() / "wrapper" / "dists").glob(f"{named[1]}-*/*/{named[1]}")
    return next((folder / "bin" / "gradle" for folder in sorted(found) if is_installation(folder)), None)


def _gradle_home() -> Path:
    return Path(os.environ.get("GRADLE_USER_HOME") or Path.home() / ".gradle")


def node_stores() -> tuple[Path, ...]:
    """The stores of packages that `node_modules` may have links into."""
    corepack = os.environ.get("COREPACK_HOME")
    places = [*(Path.home() / name for name in NODE_STORES), *([Path(corepack)] if corepack else [])]
    return tuple(place for place in places if place.is_dir())


def linked_packages(site: Site) -> tuple[Path, ...]:
    """Where `node_modules` leads to, if it is a link out of the project.

    Only to a folder of that name: a project could else have any folder of its user shown to its tests."""
    links = [folder / PACKAGES for folder in site.above()]
    found = [link.resolve() for link in links if link.is_symlink()]
    return tuple(place for place in found if place.name == PACKAGES and place.is_dir())
