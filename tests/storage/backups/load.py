"""A child process that appends to the journal of a home as fast as it can, and says what was acknowledged.

python load.py <home> <streams>"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from handrail.assembly.opening import open_store
from handrail.domain.journal.chain import Head
from handrail.domain.journal.projection import NO_CHANGE
from handrail.domain.journal.store_event import BreakerProbed
from handrail.settings import read_settings


async def main(home: Path, streams: int) -> None:
    settings = read_settings({"home": str(home), "project": str(home.parent)}, {})
    async with open_store(settings) as opened:

        async def write(name: str) -> None:
            head, event = Head(f"server/prj_load/{name}"), BreakerProbed(server=name)
            while True:
                records, _ = opened.record_writer.write(head, [event], actor="handrail")
                await opened.journal.append(records, NO_CHANGE)
                head = Head(head.stream, records[-1].n, records[-1].hash)
                os.write(1, f"{head.stream} {head.n} {head.hash.hex()}\n".encode())

        await asyncio.gather(*(write(f"s{number}-{os.getpid()}") for number in range(streams)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
