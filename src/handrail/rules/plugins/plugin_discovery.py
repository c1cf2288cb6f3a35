"""Plugin rules: rules that installed packages provide through the entry point group `handrail.rules`.

Packages are found by their metadata; their code is never imported here. The name of an entry point is the name of its
rule. A rule that can't be used does no harm: it is listed with its error."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec

from handrail.domain.checks.rule import RuleCard
from handrail.domain.json import digest
from handrail.engine.checking.rule import RuleUnavailable
from handrail.engine.sandbox import Sandbox
from handrail.rules.plugins.card_cache import CardCache
from handrail.rules.plugins.plugin_rule import PluginRule, PluginSandbox, RuleBroken, RuleEntry, described

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

GROUP: Final = "handrail.rules"
RULES_MAX: Final = 1_000
OWN_CODE: Final = Path(__file__).parents[2]

Confine: TypeAlias = Callable[[Sequence[Path]], Sandbox]
"""Makes the sandbox for plugin rules, in which these folders can be read in addition to what commands can read."""


class PluginRules:
    """The rules of installed packages: names are known at once, cards when the rules are first used."""

    def __init__(
        self,
        confine: Confine,
        *,
        reserved: Collection[str] = (),
        installed: Callable[[], Mapping[str, RuleEntry | str]] | None = None,
        cache: CardCache | None = None,
    ) -> None:
        """`reserved` are names that no package may use; `installed` finds rule entries, or the reason why one can't be
        used; `cache` has the cards of earlier processes."""
        self._cache = cache
        self._confine = confine
        self._reserved = frozenset(reserved)
        self._installed = installed or rule_entries
        self._entries: Mapping[str, RuleEntry] | None = None
        self._sandbox: PluginSandbox | None = None
        self._rules: dict[str, PluginRule] = {}
        self.broken: dict[str, str] = {}
        """Rules that can't be used, with the reason."""

    def names(self) -> Collection[str]:
        """The names of all plugin rules."""
        return self._known().keys()

    async def find(self, name: str) -> PluginRule | None:
        """The rule of that name, asked for its card if that is not known yet; None if it is unknown or unusable."""
        await self._describe([name])
        return self._rules.get(name)

    def known(self, name: str) -> RuleCard | None:
        """The card of a rule if it is known from this process or an earlier one; no process is started."""
        if name in self._rules:
            return self._rules[name].card
        entry = self._known().get(name)
        return self._cache.find(entry) if entry is not None and self._cache is not None else None

    async def all(self) -> Sequence[PluginRule]:
        """All usable rules by name; afterwards `broken` has the others."""
        await self._describe(self.names())
        return [self._rules[name] for name in sorted(self._rules)]

    async def _describe(self, names: Collection[str]) -> None:
        """Ask these rules for their cards, each once in a process."""
        known = self._known()
        new = [known[name] for name in names if name in known and name not in {*self._rules, *self.broken}]
        if new:
            sandbox = self._sandbox = self._sandbox or PluginSandbox(self._confine(visible(known.values())))
            await asyncio.gather(*(self._describe_one(entry, sandbox) for entry in new))

    async def _describe_one(self, entry: RuleEntry, sandbox: PluginSandbox) -> None:
        try:
            rule = self._rules[entry.name] = await described(entry, sandbox)
            if self._cache is not None:
                await asyncio.to_thread(self._cache.keep, entry, rule.card)
        except (RuleBroken, OSError, ValueError) as error:
            self.broken[entry.name] = f"{entry.origin}: {error}"
        except RuleUnavailable:  # temporary: the next caller may succeed
            return

    def _known(self) -> Mapping[str, RuleEntry]:
        if self._entries is None:
            found = self._installed()
            self._entries = {}
            for name, entry in found.items():
                if isinstance(entry, str):
                    self.broken[name] = entry
                elif name in self._reserved:
                    self.broken[name] = f"{entry.origin}: there is a rule {name} already; give this one another name"
                else:
                    self._entries = {**self._entries, name: entry}
        return self._entries


def rule_entries() -> Mapping[str, RuleEntry | str]:
    """Every rule that an installed package provides, or why it can't be used."""
    # Imported late: searching everything that is installed takes 70 ms, and most checks apply built-in rules.
    from importlib.metadata import entry_points

    found: dict[str, RuleEntry | str] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))[:RULES_MAX]:
        if point.name in found:
            found[point.name] = "two packages provide a rule of this name; remove one of them"
        elif point.dist is None:
            found[point.name] = "it belongs to no package; install its package again"
        else:
            found[point.name] = _entry_or_why(point, point.dist)
    return found


def _entry_or_why(point: EntryPoint, package: Distribution) -> RuleEntry | str:
    try:
        return _entry(point, package)
    except (KeyError, OSError, TypeError, ValueError) as error:  # for instance, a half-removed package
        return f"the metadata of its package can't be read: {error!r}"


def _entry(point: EntryPoint, package: Distribution) -> RuleEntry:
    about = package.metadata
    if "Name" not in about or "Version" not in about:
        raise ValueError("it has no name or no version")
    direct = _direct(package)
    is_editable = bool(direct.get("dir_info", {}).get("editable"))
    source = unquote(urlsplit(str(direct.get("url", ""))).path) if is_editable else ""
    record = "" if is_editable else package.read_text("RECORD") or ""
    return RuleEntry(
        name=point.name,
        value=point.value,
        package=about["Name"],
        version=about["Version"],
        path=tuple(filter(None, (str(package.locate_file("")), source))),
        content=digest(record) if record else "",
    )


def _direct(package: Distribution) -> Mapping[str, Any]:
    """Where the package was installed from, if the installer recorded it."""
    try:
        found = msgspec.json.decode(package.read_text("direct_url.json") or "{}")
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("dir_info", {}), dict) else {}


def visible(offered: Iterable[RuleEntry]) -> Sequence[Path]:
    """What the process of a plugin rule must be able to read: Python, handrail, and the packages.

    Never a whole home folder, in case a package lies directly in it: keys and credentials are there."""
    code = (Path(path) for entry in offered for path in entry.path)
    python = (Path(place) for place in (sys.prefix, sys.base_prefix, sys.base_exec_prefix))
    found = dict.fromkeys(path.resolve() for path in (*python, OWN_CODE, *code) if path.is_dir())
    return [folder for folder in found if not _is_too_much(folder)]


def _is_too_much(folder: Path) -> bool:
    try:
        home = Path.home().resolve()
    except RuntimeError:  # a user without an entry in the system's list of users
        home = Path("/")
    return folder == Path(folder.anchor) or folder == home or folder in home.parents
