"""Derive the outcome of a search for settings: gain, effects of settings, and texts to paste. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from strakes.base.errors import BadInputError
from strakes.base.foreign_text import for_shell, shell_line
from strakes.base.language import gettext
from strakes.model.portrait import IntervalOf, Setting
from strakes.model.setting_text import level_of
from strakes.runs.records import Visit
from strakes.runs.run import Run
from strakes.tuning import tune_offers as offers
from strakes.tuning.advise_app import App, app_from_text
from strakes.tuning.advise_choose import Choice, Chosen, What
from strakes.tuning.advise_paste import Paste, pastes
from strakes.tuning.trial import confirmation_of, observed, preparation_of
from strakes.tuning.tune_effects import Effects, effects
from strakes.tuning.tune_plans import TrialSize
from strakes.tuning.tune_search import Search
from strakes.tuning.tune_space import Point
from strakes.tuning.tune_words import KNOB, to_do, typed

_WHAT: Mapping[str, What] = {
    offers.TRANSFER: "transfer size",
    offers.WRITERS: "processes per node",
    offers.STRIPE_COUNT: "stripe count",
    offers.STRIPE_BYTES: "stripe size",
    offers.FILES: "files",
}

# If the best rate may be higher than the present rate by this factor, the runs are too noisy for a conclusion.
_LOOSE_TIMES = 1.5


@dataclass(frozen=True)
class TuningOutcome:
    """Outcome of a search, computed from its run."""

    run: Run
    app: App
    search: Search
    scale: TrialSize

    @cached_property
    def verdict(self) -> Literal["better", "not-shown", "unfinished"]:
        """Verdict of the search: "better" if the interval of the gain is above 1, "unfinished" without final runs."""
        confirmation, gain = self.search.confirmation, self.search.gain
        if confirmation is None or (confirmation.runs and gain is None):
            return "unfinished"
        return "better" if gain is not None and gain.interval is not None and gain.interval.low > 1 else "not-shown"

    def gain_interval(self, of: str) -> IntervalOf | None:
        """Return the interval of the gain, or None if no gain was measured. ``of``: description of the ratio."""
        gain = self.search.gain
        if gain is None or gain.interval is None:
            return None
        return IntervalOf(gain.interval.low, gain.interval.high, gain.interval.confidence, of, "times")

    @property
    def changes(self) -> Mapping[str, Setting]:
        """Return factor -> value of the best setting, for each factor whose present value is different."""
        space = self.search.space
        default, best = map(space.settings, (space.default, self.search.best))
        return {name: level for name, level in best.items() if level != default[name]}

    @cached_property
    def effects(self) -> Effects:
        """Return the effects of all settings, estimated by a model fitted to all trials before the final comparison."""
        return effects(self.search)

    @cached_property
    def most_possible(self) -> float:
        """Upper confidence limit of the ratio of the best rate to the present rate."""
        upper = (1 + self.search.confidence) / 2
        gain = self.search.gain
        return max(self.search.most_possible(upper), gain.interval.high if gain and gain.interval else 1.0)

    def visits_of(self, point: Point) -> list[Visit]:
        """Return the successful trials of a setting. Trials of the final comparison replace earlier trials."""
        settings = self.search.space.settings(point)
        own = [visit for visit in self.run.visits if visit.settings == settings and visit.ended_well]
        return [visit for visit in own if not visit.is_measurement] or own

    @property
    def statement(self) -> str:
        """The result of the search in a few sentences."""
        confidence, gain = f"{self.search.confidence:.0%}", self.search.gain
        if self.verdict == "unfinished":
            return gettext("The search ended before its best setting was confirmed, so no gain is claimed.")
        if self.verdict == "better" and gain is not None and (interval := gain.interval) is not None:
            return gettext(
                "{changes}: {ratio:.2f} times as fast as the default [{low:.2f} - {high:.2f}, {confidence} "
                "interval, {runs} new alternating runs of each].",
                changes=typed(self.changes),
                ratio=gain.median,
                low=interval.low,
                high=interval.high,
                confidence=confidence,
                runs=gain.runs,
            )
        model = {"confidence": confidence, "count": len(self.search.told)}
        if self.most_possible > _LOOSE_TIMES:
            return gettext(
                "No setting is shown to be better than the default. But the runs vary too much to rule out a gain: "
                "up to {ratio:.1f} times as fast is possible ({confidence}, by the model of all {count} runs). "
                "Repeat when the system is quieter, or with a larger --budget.",
                ratio=self.most_possible,
                **model,
            )
        return gettext(
            "No setting is shown to be better than the default. A gain, if there is one, is at most {gain:.0f} % "
            "({confidence}, by the model of all {count} runs).",
            gain=100 * (self.most_possible - 1),
            **model,
        )

    @cached_property
    def pastes(self) -> tuple[Paste, ...]:
        """The best setting as texts to paste. Empty if no gain was shown."""
        if self.verdict != "better":
            return ()
        interval = self.gain_interval("all changes together, over the default")
        kind = str(self.changes.get(offers.LAYOUT, offers.PLAIN_LAYOUT))
        plain = kind == offers.PLAIN_LAYOUT
        found = ("found by strakes tune", (self.run.id,), interval)
        choices = [
            Choice(phase.name, _WHAT[name], level, level_of(name, level), *found)
            for phase in self.app.phases
            for name, level in self.changes.items()
            if name in _WHAT and isinstance(level, int | str) and (plain or name not in offers.LAYOUT_FACTORS)
        ]
        snippets = list(pastes(self.app, Chosen(tuple(choices), ()), str(self.run.facts.get("file_system", ""))))
        if not plain:
            layout = for_shell(f"lfs setstripe {kind} DIR")
            snippets.append(Paste("layout", "a shell, before the files are made in DIR", layout))
        knobs = [f"{name.removeprefix(KNOB)}={level}" for name, level in self.changes.items() if name.startswith(KNOB)]
        if knobs:
            where = "a shell, as root; strakes knobs restore puts the old values back"
            command = shell_line(["strakes", "knobs", "set", "DIR", *knobs])
            snippets.append(Paste("settings of the system", where, command))
        own = [instruction for name, level in self.changes.items() if (instruction := to_do(name, level))]
        if own:
            snippets.append(Paste("the application itself", "its configuration or its source", "\n".join(own)))
        return tuple(snippets)


def outcome_of(run: Run) -> TuningOutcome:
    """Return the outcome of a search. Raises BadInputError if the run is not a search, or has no trial."""
    preparation = preparation_of(run)
    if run.manifest.get("kind") != "tune" or preparation is None or not run.visits:
        remedy = "List the runs and their kinds: strakes runs"
        raise BadInputError("this run is not a search, or contains no trial", where=run.id, remedy=remedy)
    space, scale = preparation
    options = run.manifest["options"]
    app = app_from_text(options["app"], str(run.manifest["name"]))
    told = observed(app, space, run.visits)
    search = Search(space, int(options["seed"]), float(options["confidence"]), told, confirmation_of(run))
    return TuningOutcome(run, app, search, scale)
