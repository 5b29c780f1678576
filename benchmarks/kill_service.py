"""kill -9 one holder process at every step of a study in turn, and start it again: are the bytes the same each time?

    python -m benchmarks.kill_service [open|sealed]

The victim changes from step to step; half of the kills fall before a step is asked, half while it is under way.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter

from federated_anon.simulate import run
from tests.services import HOLDERS, Region, prepared, serving, soon

FILES = ("release.parquet", "release.csv", "report.json")


def main(exposure: str) -> None:
    """One undisturbed run, then one run per step with a kill in it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with serving(prepared(folder / "region", exposure)) as region:
            steps: list[str] = []
            begun = perf_counter()
            run(
                region.study,
                folder / "calm",
                certificates=region.certificates,
                listen=lambda progress: steps.append(progress.step.value),
            )
            print(f"{exposure}: {len(steps)} steps, {perf_counter() - begun:.1f} s undisturbed")
            for number, step in enumerate(steps):
                print(f"  {number:3d} {step:12s} {killed_at(region, folder, number)}", flush=True)


def killed_at(region: Region, folder: Path, number: int) -> str:
    """Kill a holder at one step; how it ended."""
    site, out, begun = region.sites[HOLDERS[number % 3]], folder / f"run-{number}", perf_counter()

    def fall_and_rise() -> None:
        site.kill()
        site.launch()

    timers = []

    def listen(progress: object) -> None:
        if getattr(progress, "number", -1) == number and not timers:
            timers.append(soon(0.03 * (number % 2), fall_and_rise))

    run(region.study, out, certificates=region.certificates, listen=listen, timeout=60)
    timers[0].join()
    site.wait_ready()
    same = all((out / name).read_bytes() == (folder / "calm" / name).read_bytes() for name in FILES)
    return f"killed {site.name}: {'same bytes' if same else 'OTHER BYTES'}, {perf_counter() - begun:.1f} s"


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "open")
