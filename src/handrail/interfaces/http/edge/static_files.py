"""The files of the console: read once, at the start, and answered from memory.

A request never names a file of the disk: it is looked up in what was read, so no path leads anywhere else."""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

FOLDER: Final = Path(__file__).parent.parent / "static"
INDEX: Final = "/index.html"
FILES_MAX: Final = 500
FILE_BYTES_MAX: Final = 4 * 1_024 * 1_024
TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
MISSING: Final = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>handrail</title>
<p>The console is not part of this installation. The API is at <a href="/api/v1/openapi.json">/api/v1</a>.</p></html>
"""

_inline_script = re.compile(rb"<script(?![^>]*\bsrc\b)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)


class StaticFile(Struct, frozen=True):
    """A file as it is sent."""

    content: bytes
    media_type: str
    etag: str


class StaticFiles(Struct, frozen=True):
    """All files by their path, and the content security policy that fits the page."""

    files: Mapping[str, StaticFile]
    policy: str

    @property
    def index(self) -> StaticFile:
        """The page."""
        return self.files[INDEX]


def read_static_files(folder: Path = FOLDER) -> StaticFiles:
    """Read the files of the console; without any, a page that says so."""
    found = [file for file in sorted(folder.rglob("*")) if file.is_file() and not file.is_symlink()]
    files = {f"/{file.relative_to(folder).as_posix()}": _read(file) for file in found[:FILES_MAX]}
    files.setdefault(INDEX, _as_file(MISSING, ".html"))
    return StaticFiles(files, policy_of(files[INDEX].content))


def policy_of(page: bytes) -> str:
    """The content security policy of a page: only its own origin, and the inline scripts that it was built with."""
    digests = [base64.b64encode(hashlib.sha256(text).digest()).decode() for text in _inline_script.findall(page)]
    scripts = " ".join(["'self'", *(f"'sha256-{one}'" for one in digests)])
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {scripts}",
            "style-src 'self'",
            "img-src 'self' data:",
            "font-src 'self'",
            "connect-src 'self'",
            "manifest-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _read(file: Path) -> StaticFile:
    if file.stat().st_size > FILE_BYTES_MAX:
        return _as_file(b"", file.suffix)
    return _as_file(file.read_bytes(), file.suffix)


def _as_file(content: bytes, suffix: str) -> StaticFile:
    guessed = mimetypes.types_map.get(suffix, "application/octet-stream")
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    return StaticFile(content, TYPES.get(suffix, guessed), etag)
