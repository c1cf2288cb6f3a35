"""The running program, opened on first use and shared by all handlers.

A server can list its tools before the store is open. If opening fails, every call answers with the error and a hint,
and opening is tried again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

from handrail.assembly.opening import Assembly, ProjectAssemblies, open_assemblies
from handrail.assembly.secrets import known_secrets_of
from handrail.assembly.tools import library_of
from handrail.domain.errors import HandrailError, Unavailable
from handrail.engine.known_secrets import KnownSecrets
from handrail.engine.measuring.measures import NO_MEASURES, Measures
from handrail.interfaces.mcp.surface.configuration_watch import ConfigurationWatch
from handrail.interfaces.mcp.surface.views.console_link import ConsoleLink
from handrail.settings import Settings

RETRY_AFTER_S: Final = 1.0
"""How long a failed opening is reported again before the next try: a burst of calls must not hammer a broken disk."""

log = logging.getLogger(__name__)


class LazyProgram:
    """Opens the program once, for all callers."""

    def __init__(self, settings: Settings, measures: Measures = NO_MEASURES) -> None:
        self.settings, self._measures = settings, measures
        self.watch = ConfigurationWatch(settings)
        self.console = ConsoleLink(settings)
        self.library = library_of(settings)
        self.offered: frozenset[str] = frozenset()
        """The tools that callers have: hints name only these."""
        self._resources = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._open: Assembly | None = None
        self._projects: ProjectAssemblies | None = None
        self._secrets: KnownSecrets | None = None
        self._failure: HandrailError | None = None
        self._failed_s = float("-inf")
        self._is_closed = False

    @property
    def opened(self) -> Sequence[Assembly]:
        """The projects that are open; none while the store can't be opened."""
        return self._projects.opened if self._projects is not None else ()

    async def open(self) -> Assembly:
        """The open program; raises the error that prevents opening it."""
        if self._open is not None:
            return self._open
        async with self._lock:  # many calls may arrive before the first opening has finished
            if self._is_closed:
                raise Unavailable("handrail is shutting down", hint="repeat the call after it has restarted")
            if self._open is None:
                await self._try_to_open()
            if self._open is None:
                raise self._failure or Unavailable("handrail can't be opened")
            return self._open

    async def open_other(self, settings: Settings) -> Assembly:
        """The parts of another project over the same open store; they are closed with it."""
        await self.open()
        async with self._lock:  # closing waits until this is done
            if self._projects is None:
                raise Unavailable("handrail is shutting down", hint="repeat the call after it has restarted")
            return await self._projects.open(settings)

    def secrets(self) -> KnownSecrets:
        """The values that no call may bring in, and no answer may have."""
        if self._open is not None:
            return self._open.writer.record_writer.secrets
        self._secrets = self._secrets or known_secrets_of(self.settings)
        return self._secrets

    async def close(self) -> None:
        """Refuse further calls, and release all resources."""
        async with self._lock:
            self._is_closed = True
            self._open = self._projects = None
            await self._resources.aclose()

    async def _try_to_open(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._failed_s < RETRY_AFTER_S:
            return
        try:
            async with AsyncExitStack() as opening:
                projects = await opening.enter_async_context(
                    open_assemblies(self.settings, actor="handrail", measures=self._measures)
                )
                self._open, self._projects = await projects.open(self.settings), projects
                self._resources.push_async_exit(opening.pop_all())
        except HandrailError as error:
            self._failure, self._failed_s = self._naming_home(error), now_s
            log.warning("%s; %s", error, error.hint)
        except OSError as error:
            self._failure = Unavailable(
                f"{self.settings.home} can't be used: {error.strerror or error}",
                hint="make it writable, or name another folder with --home or HANDRAIL_HOME",
            )
            self._failed_s = now_s
            log.warning("%s; %s", self._failure, self._failure.hint)

    def _naming_home(self, error: HandrailError) -> HandrailError:
        """The error, with the folder it concerns and how to choose another, unless it already says so."""
        if type(error) is not Unavailable or "HANDRAIL_HOME" in error.hint:
            return error
        hint = f"{error.hint}, or name another folder with --home or HANDRAIL_HOME"
        return Unavailable(f"{self.settings.home} can't be used: {error}", hint=hint)
