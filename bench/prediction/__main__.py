"""Fit the population of file systems, and test forecasts: ``python -m bench.prediction DATA --fit --page FILE``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.prediction.data import io500, tables
from bench.prediction.fit import fit, render
from bench.prediction.judge import VARIANTS, leave_out
from bench.prediction.page import make_page
from strakes.predict import population


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.prediction", description=__doc__)
    parser.add_argument("data", type=Path, help="The directory with the published data.")
    parser.add_argument("--fit", action="store_true", help="Write src/strakes/predict/population.toml.")
    parser.add_argument("--page", type=Path, help="Write the page here.")
    arguments = parser.parse_args()
    figures = [*io500(arguments.data), *tables()]
    if arguments.fit:
        Path(population.__file__).with_suffix(".toml").write_text(render(fit(figures)), encoding="utf-8")
        population.fitted.cache_clear()
    if arguments.page is not None:
        variants = {name: leave_out(figures, variant) for name, variant in VARIANTS.items()}
        arguments.page.write_text(make_page(arguments.data, variants), encoding="utf-8")
    if not arguments.fit and arguments.page is None:
        parser.error("give --fit, --page FILE, or both")


if __name__ == "__main__":
    main()
