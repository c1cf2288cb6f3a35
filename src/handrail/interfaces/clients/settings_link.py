"""Links in the way to a client's settings: where a file really is, and whether it may be changed there.

A cloned project can contain a link to anything, so nothing is read or written through one there. In the user's own
folders a link is normal (programs that manage dotfiles make them): it is followed if its target is the user's, too."""

from __future__ import annotations

import os
from pathlib import Path

from handrail.domain.errors import Forbidden
from handrail.interfaces.clients.client import HostPaths, Scope


def real_target(path: Path, scope: Scope, host: HostPaths) -> Path:
    """The file that a path leads to; Forbidden if it must not be read or changed there."""
    base = host.project if scope is Scope.PROJECT else host.home
    target = Path(os.path.realpath(path))
    if _is_below(path, base) and _same(target, Path(os.path.realpath(base)) / path.relative_to(base)):
        return target  # no link on the way; that the base itself is one was the user's choice
    if scope is Scope.PROJECT:
        raise Forbidden(
            f"{path} leads through a link to {target}; a project's settings are not changed through a link",
            hint="put a file or folder in place of the link if you trust the project, or use --scope user",
        )
    if not path.is_symlink() and not _is_below(path, base):
        return target  # a folder that the user chose in an environment variable
    _require_own(path, target, Path(os.path.realpath(host.home)))
    return target


def _require_own(path: Path, target: Path, home: Path) -> None:
    """Refuse a link out of the user's own folder, or to what belongs to someone else."""
    nearest = next(one for one in (target, *target.parents) if one.exists())
    is_own = not hasattr(os, "getuid") or nearest.stat().st_uid == os.getuid()
    if not (_is_below(target, home) and is_own):
        raise Forbidden(
            f"{path} is a link to {target}, which is not yours or not in your home folder",
            hint="change that file by hand, or put a file in place of the link",
        )


def _is_below(path: Path, folder: Path) -> bool:
    return path.is_relative_to(folder)


def _same(one: Path, other: Path) -> bool:
    return os.path.normcase(one) == os.path.normcase(other)
