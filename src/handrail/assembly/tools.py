"""Tools and workflows of a project: the toolbox, the library, secrets, and what trust switches on.

Part of the only place that knows which parts the program is made of; nothing is decided here."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from handrail.assembly.checks import flaws_in, rules_of, shell_of
from handrail.assembly.secrets import allowed_env, known_secrets_of, secrets_of
from handrail.domain.analysis.local import Local, LocalPeople, Survey
from handrail.domain.trust.decision import TrustItem, untrusted_words, withheld_words
from handrail.engine.known_secrets import KnownSecrets
from handrail.library.shelf.workflow_entry import WorkflowSource
from handrail.library.shelf.workflow_library import WorkflowLibrary
from handrail.rules.registry import RuleRegistry
from handrail.settings import PROJECT_FOLDER, TOOLS_NAME, Settings
from handrail.storage.keys import open_secret
from handrail.storage.trust_file import TrustFile
from handrail.tools.configuration import ToolConfiguration, WithheldHosts, tool_configuration
from handrail.tools.files.content_store import ContentStore
from handrail.tools.mcp.declaration import Declared, ToolsText, declared_servers, declared_text
from handrail.tools.mcp.servers import Servers
from handrail.tools.mcp.working_folder import ServerPlaces
from handrail.tools.registry import Registry
from handrail.tools.sdk import PythonTool
from handrail.tools.shell import OFF, SHELL, shell_configuration, shell_tools
from handrail.tools.vault import Vault

KEEPING: Final = "keeping.key"


def library_of(settings: Settings) -> WorkflowLibrary:
    """The library of workflows: the project's own, the user's, those of further folders, and the built-in ones."""
    more = [WorkflowSource("more", folder) for folder in settings.choices.library.split(os.pathsep) if folder]
    sources = [
        WorkflowSource("project", str(settings.workflows), within=str(settings.project)),
        WorkflowSource("user", str(settings.home / "workflows")),
        *more,
    ]
    if settings.choices.built_in:
        sources.append(WorkflowSource("built in", str(files("handrail.library").joinpath("workflows"))))
    return WorkflowLibrary(
        sources, cache_file=settings.home / "cache" / "library.json", survey=survey_of(rules_of(settings))
    )


def survey_of(rules: RuleRegistry, toolbox: Registry | None = None, people: LocalPeople | None = None) -> Survey:
    """Reports what is known of the tools, rules and people in a definition; what is not passed in is not checked."""

    def survey(tools: Collection[str], checks: Collection[str]) -> Local:
        known = toolbox.known(tools) if toolbox is not None else None
        return Local(tools=known, rules=rules.known(checks), fits=flaws_in, people=people)

    return survey


def toolbox_of(
    settings: Settings, tools: Sequence[PythonTool] = (), *, secrets: KnownSecrets | None = None
) -> Registry:
    """All tools that plans of this project can call; projects on one open store share what is known of `secrets`."""
    _require_well_formed(settings)
    configuration = _configuration(settings)
    known = secrets or known_secrets_of(settings)
    vault = Vault(secrets_of(settings), allowed_env=allowed_env(settings), known=known)
    kept = ContentStore(settings.kept, secrets=known, key=partial(open_secret, settings.keys, KEEPING))
    servers = Servers(
        servers_of(settings),
        places=ServerPlaces(settings.project, settings.neutral),
        logs=settings.home / "logs" / "servers",
        cache=settings.home / "cache" / "servers.json",
        kept=kept,
        vault=vault,
        configuration=configuration,
    )
    off = tools_off(settings)
    return Registry(
        project=settings.project,
        kept=kept,
        private=(settings.home,),
        configuration=configuration,
        own=tools,
        more=shell_tools(settings.project, shell_of(settings), private=(settings.home,), off=off.get(SHELL, "")),
        off=off,
        servers=servers,
        vault=vault,
    )


def tools_off(settings: Settings) -> Mapping[str, str]:
    """The built-in tools that every call of is refused, and why."""
    if shell_of(settings).allow:
        return {}
    is_withheld = settings.trust.is_off and shell_configuration(settings.project_tables).allow
    return {SHELL: f"{OFF}; {withheld_words(settings.trust.state)}" if is_withheld else OFF}


def _configuration(settings: Settings) -> ToolConfiguration:
    counting = tool_configuration(settings.tables)
    if not settings.trust.is_off:
        return counting
    hosts = tool_configuration(settings.project_tables).allow
    return replace(counting, withheld=WithheldHosts(hosts, withheld_words(settings.trust.state)))


def servers_of(settings: Settings) -> Mapping[str, Declared]:
    """The declared tool servers: the user's, then those of the project, which are off until a person trusts it."""
    files: list[Path | ToolsText] = [settings.home / TOOLS_NAME]
    if settings.tools_text is not None:
        state = settings.trust.state
        off = None if settings.trust.is_trusted else partial(untrusted_words, state=state)
        file = settings.project / PROJECT_FOLDER / TOOLS_NAME
        files.append(ToolsText(file=file, content=settings.tools_text, is_projects=True, off=off))
    return declared_servers(files)


def trust_items(settings: Settings) -> tuple[TrustItem, ...]:
    """Everything that trust in this project switches on: settings, then tool servers. Invalid if a file is wrong."""
    _require_well_formed(settings)
    file = str(settings.project / PROJECT_FOLDER / TOOLS_NAME)
    servers = [one for one in servers_of(settings).values() if one.origin == file]
    return (*settings.trust.settings, *(TrustItem(f"server {one.name}", declared_text(one)) for one in servers))


def trust_decisions(settings: Settings) -> TrustFile:
    """The decisions about all projects of this home."""
    return TrustFile(settings.home)


def _require_well_formed(settings: Settings) -> None:
    """Refuse wrong tables of the project even while they don't count: their author must not wait to hear of it."""
    tool_configuration(settings.project_tables)
    shell_configuration(settings.project_tables)
