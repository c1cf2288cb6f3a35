"""What commands of checks say has no secrets, before rules cut it."""

from __future__ import annotations

import sys
from pathlib import Path

from handrail.engine.checking.clean_sandbox import CleanSandbox
from handrail.engine.known_secrets import KnownSecrets
from handrail.engine.sandbox import Job
from handrail.tools.sandbox.unconfined import Unconfined

TOKEN = "zQ7-Xk_92aB3"
SAYING = """
import base64, sys
token = sys.argv[1]
print("a", token, "b 48291377")
print('{"n": 48291377}', base64.b64encode(token.encode()).decode(), file=sys.stderr)
"""


async def test_what_a_command_says_has_no_secret_and_numbers_stay_as_they_are(tmp_path: Path) -> None:
    secrets = KnownSecrets(given={TOKEN: "TOKEN"})
    sandbox = CleanSandbox(Unconfined(tmp_path), secrets)
    secrets.add({"48291377": "PIN"})
    ran = await sandbox.run(Job(argv=(sys.executable, "-c", SAYING, TOKEN)))
    assert ran.stdout == "a [redacted] b 48291377\n"
    assert ran.stderr == '{"n": 48291377} [redacted]\n', "also encoded"
    assert not sandbox.is_throw_away
