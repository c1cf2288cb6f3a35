"""Which places outside the project a command sees because its tools are there: interpreters, packages, caches.

What a tool chain wants to show is checked again here, because it is found by reading the project's files, which a
stranger may have written: never a whole home folder, never a place where people keep secrets, nothing private. Places
are shown where they really are, and links that lead there are made again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

SECRET_PLACES: Final = (
    *(".ssh", ".aws", ".azure", ".config", ".docker", ".gnupg", ".kube", ".mozilla", ".password-store", ".thunderbird"),
    *(".netrc", ".npmrc", ".pypirc", ".yarnrc.yml", ".git-credentials", ".vault-token", ".pgpass", ".my.cnf"),
    *(".local/share/keyrings", ".local/share/handrail", ".local/state", ".pki", ".terraform.d", ".gem/credentials"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".m2/settings-security.xml"),
    *(".gradle/gradle.properties", ".gradle/init.d", ".bash_history", ".python_history", ".node_repl_history"),
)
"""Where people keep secrets, relative to their home folder."""
PLACES_MAX: Final = 100


class ShownPlaces(Struct, frozen=True, kw_only=True):
    """What a command sees besides the project and the system; every path is absolute."""

    folders: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    links: tuple[tuple[Path, Path], ...] = ()
    """Each with its target."""
    covered_folders: tuple[Path, ...] = ()
    """Folders in these that are shown empty."""
    covered_files: tuple[Path, ...] = ()
    """Files in these that are shown empty."""


class Surroundings(Struct, frozen=True, kw_only=True):
    """What decides on the places of one sandbox."""

    visible: Sequence[Path]
    """Folders that the command sees anyway: the system, the project, and those that a person allowed."""
    homes: Sequence[Path]
    private: Sequence[Path] = ()


def shown_places(wanted: Iterable[Path], around: Surroundings) -> ShownPlaces:
    """Those of the wanted places that may be shown."""
    kept = [home / name for home in around.homes for name in SECRET_PLACES]
    allowed = list(_allowed(wanted, around, [*around.private, *kept]))
    reals = sorted({real for _, real in allowed if not _is_visible(real, around)})
    folders = tuple(_outermost(filter(Path.is_dir, reals)))
    files = tuple(real for real in filter(Path.is_file, reals) if not _is_in_any(real, folders))
    # Shown folders may have secret places inside them: these are shown empty.
    inner = [place for place in kept if _is_in_any(place, folders)]
    return ShownPlaces(
        folders=folders,
        files=files,
        links=tuple(_links(allowed, [*folders, *files], around)),
        covered_folders=tuple(filter(Path.is_dir, inner)),
        covered_files=tuple(filter(Path.is_file, inner)),
    )


def _allowed(wanted: Iterable[Path], around: Surroundings, secret: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Each place that may be shown, as it is spelled and where it really is."""
    for path in islice(filter(Path.is_absolute, dict.fromkeys(wanted)), PLACES_MAX):
        # Both are judged: a link may lead from a harmless place to a secret one, or be called like one.
        pair = (path, path.resolve())
        if pair[1].exists() and _may_be_shown(pair, around, secret):
            yield pair


def _may_be_shown(pair: tuple[Path, Path], around: Surroundings, secret: Sequence[Path]) -> bool:
    whole = [*around.homes, Path("/")]
    # A place that contains a whole home, or everything, would show what is not listed as secret as well.
    return not any(_is_in(keeper, path) for path in pair for keeper in whole) and not any(
        _is_in_any(path, secret) for path in pair
    )


def _is_visible(path: Path, around: Surroundings) -> bool:
    """Whether a command sees it anyway; a home folder is hidden even if it is in a folder of the system."""
    holders = [folder for folder in around.visible if _is_in(path, folder)]
    hiders = [home for home in around.homes if _is_in(path, home)]
    return any(all(_is_in(folder, home) for home in hiders) for folder in holders)


def _links(
    pairs: Iterable[tuple[Path, Path]], shown: Sequence[Path], around: Surroundings
) -> Iterator[tuple[Path, Path]]:
    """The spelled paths that lead somewhere else, unless they are seen as links already."""
    made: list[Path] = []
    for spelled, real in sorted(set(pairs)):
        if spelled != real and not _is_visible(spelled, around) and not _is_in_any(spelled, [*shown, *made]):
            made.append(spelled)
            yield spelled, real


def _outermost(folders: Iterable[Path]) -> Iterator[Path]:
    """Folders that are in none of the others; they come sorted."""
    kept: list[Path] = []
    for folder in folders:
        if not _is_in_any(folder, kept):
            kept.append(folder)
            yield folder


def _is_in_any(path: Path, folders: Iterable[Path]) -> bool:
    return any(_is_in(path, folder) for folder in folders)


def _is_in(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents
