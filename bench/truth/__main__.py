"""Error rates and power of simulated surveys: ``python -m bench.truth [--surveys 100] [--seed 1]`` prints the table."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench.truth.judge import Tally
from bench.truth.noise import Noise, disturbances, log_normal
from bench.truth.simulated import survey
from bench.truth.world import EQUAL, World, mixed, planted
from strakes.survey.analysis_build import study_portrait

Draw = Callable[[np.random.Generator], World]
HEAD = (
    "| truth | noise | surveys | with a false sure | sure and alike wrong | likely wrong | planted differences found "
    "| answered |\n|---|---|---|---|---|---|---|---|"
)


def tally(draw: Draw, noise: Noise, surveys: int, seed: int, budget_s: float) -> Tally:
    """Return the counts of right and wrong answers in simulated surveys of random worlds."""
    found = Tally()
    for number in range(surveys):
        world = draw(np.random.default_rng([seed, number]))
        with tempfile.TemporaryDirectory() as place:
            run = survey(world, noise, seed * 100_000 + number, Path(place), budget_s)
            found.add(run, study_portrait(run).answers, world)
    return found


def cases() -> list[tuple[str, Draw, Noise]]:
    """Return (name, function that draws a world, noise model) of each row of the table."""
    sizes = ((1.15, 0.05), (1.3, 0.15), (2.0, 0.3))
    return [
        *(("all equal", lambda _: EQUAL, noise) for noise in disturbances()),
        *(
            (
                f"{100 * effect - 100:.0f} %",
                lambda generator, effect=effect: planted(effect, generator),
                log_normal(scatter),
            )
            for effect, scatter in sizes
        ),
        *(("mixed", mixed, noise) for noise in disturbances()),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--surveys", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, default=120.0)
    asked = parser.parse_args()
    print(HEAD, flush=True)
    for name, draw, noise in cases():
        found = tally(draw, noise, asked.surveys, asked.seed, asked.budget)
        cells = [
            name,
            noise.name,
            f"{found.surveys}",
            f"{found.false_sure / found.surveys:.1%}",
            f"{found.share_wrong('sure', 'alike'):.1%}",
            f"{found.share_wrong('likely'):.1%} of {found.given['likely']}",
            f"{found.found / found.planted:.0%} of {found.planted}" if found.planted else "-",
            f"{found.answered:.0%}",
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
