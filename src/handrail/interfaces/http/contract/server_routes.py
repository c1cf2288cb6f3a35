"""The routes of the journal, the live feed, and the server itself."""

from __future__ import annotations

from typing import Final

from handrail.domain.policy.act import Act
from handrail.engine.proving.bundle_account import Account
from handrail.interfaces.http.contract import asked
from handrail.interfaces.http.contract.given import journal as journal_given
from handrail.interfaces.http.contract.given import server as server_given
from handrail.interfaces.http.contract.route import CHECK_S, GET, POST, MediaType, Route

BUNDLE_BYTES: Final = 64 * 1_024 * 1_024

JOURNAL: Final = (
    Route(
        method=GET,
        path="/journal",
        name="query_journal",
        summary="Events: of one run in order, or of the whole store, newest first",
        query=asked.JournalQuery,
        gives=journal_given.EventPage,
        page="/journal",
        tag="journal",
    ),
    Route(
        method=GET,
        path="/journal/verify",
        name="verify_journal",
        summary="Verify the whole journal, or one run, now",
        query=asked.VerifyQuery,
        gives=journal_given.Verified,
        tag="journal",
        within_s=CHECK_S,
    ),
    Route(
        method=GET,
        path="/journal/export",
        name="export_journal",
        summary="Every event with all that is needed to verify the chain elsewhere, as JSON lines",
        query=asked.ExportQuery,
        gives=journal_given.EventView,
        form=MediaType.LINES,
        tag="journal",
        within_s=CHECK_S,
    ),
    Route(
        method=GET,
        path="/journal/bundle/{run}",
        name="run_bundle",
        summary="A run as a signed proof bundle",
        gives=bytes,
        form=MediaType.BUNDLE,
        tag="journal",
        within_s=CHECK_S,
    ),
    Route(
        method=POST,
        path="/journal/bundle/verify",
        name="verify_bundle",
        summary="What a proof bundle proves; it is sent as it is; changes nothing",
        gives=Account,
        takes_bytes=True,
        tag="journal",
        body_bytes=BUNDLE_BYTES,
        within_s=CHECK_S,
    ),
    Route(
        method=POST,
        path="/journal/checkpoint",
        name="make_checkpoint",
        summary="Sign the current state of the journal",
        gives=journal_given.CheckpointMade,
        acts=(Act.OPERATE,),
        tag="journal",
    ),
    Route(
        method=GET,
        path="/proof",
        name="proof",
        summary="Checkpoints, witnesses, the key and where the streams end",
        query=asked.CheckpointsQuery,
        gives=journal_given.JournalProof,
        page="/proof",
        tag="journal",
    ),
    Route(
        method=GET,
        path="/proof/{run}",
        name="proof_of_run",
        summary="Verify one run now",
        gives=journal_given.Verified,
        page="/proof/{run}",
        tag="journal",
        within_s=CHECK_S,
    ),
    Route(
        method=GET,
        path="/events",
        name="events",
        summary="The live feed: the journal's own events by their place in the store; `Last-Event-ID` resumes",
        query=asked.EventsQuery,
        gives=journal_given.EventView,
        form=MediaType.EVENTS,
        tag="journal",
    ),
)

SERVER: Final = (
    Route(
        method=GET,
        path="/stats",
        name="statistics",
        summary="Runs by outcome, workflow and day, and calls of tools, so far",
        query=asked.SinceQuery,
        gives=server_given.Statistics,
        page="/insight",
        tag="server",
        within_s=CHECK_S,
    ),
    Route(
        method=GET,
        path="/doctor",
        name="doctor",
        summary="Check this installation; each finding has its fix",
        gives=server_given.DoctorReport,
        page="/settings/doctor",
        tag="server",
        within_s=CHECK_S,
    ),
    Route(
        method=GET,
        path="/clients",
        name="list_clients",
        summary="Agents, people and workers: connected now, or last heard",
        gives=server_given.ClientList,
        page="/settings/clients",
        tag="server",
    ),
    Route(
        method=GET,
        path="/projects",
        name="list_projects",
        summary="The projects of this home",
        gives=server_given.ProjectList,
        page="/settings/projects",
        tag="server",
    ),
    Route(
        method=GET,
        path="/settings",
        name="list_settings",
        summary="The settings in effect, and where each comes from",
        gives=server_given.SettingList,
        page="/settings/configuration",
        tag="server",
    ),
    Route(
        method=GET,
        path="/about",
        name="about",
        summary="Version, folders, address",
        gives=server_given.AboutServer,
        page="/settings/about",
        tag="server",
    ),
    Route(
        method=GET,
        path="/session",
        name="session",
        summary="Who asks, and how they came in",
        gives=server_given.WhoAsks,
        tag="session",
    ),
)
