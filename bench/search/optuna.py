"""Serves Optuna's samplers to bench/search: one JSON object a line on standard
input, one on standard output for each.

  {"new": {"sampler": "tpe", "seed": 1, "knobs": [{"id": "a", "levels": 4, "ordered": true}]}}
  {"tell": {"levels": [0], "value": 3.5}}    value null: the trial failed
  {"ask": {}}                                answers {"levels": [2]}

A trial that was not asked for, as the default is, may be told too: before the
first ask. More is better. A failed trial counts as the worst value so far, which
suits all of these samplers better than a trial that failed.
"""

import json
import sys
import warnings


def answer(message):
    print(json.dumps(message), flush=True)


try:
    import optuna
    from optuna.distributions import CategoricalDistribution, IntDistribution
    from optuna.trial import create_trial
except ImportError as missing:
    answer({"missing": str(missing)})
    sys.exit(0)

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.simplefilter("ignore")


def sampler_of(kind, seed):
    if kind == "tpe":
        return optuna.samplers.TPESampler(multivariate=True, seed=seed)
    if kind == "gp":
        import torch

        torch.set_num_threads(1)
        return optuna.samplers.GPSampler(seed=seed)
    return optuna.samplers.CmaEsSampler(
        seed=seed,
        with_margin=True,
        independent_sampler=optuna.samplers.TPESampler(seed=seed),
        warn_independent_sampling=False,
    )


class Campaign:
    def __init__(self, sampler, seed, knobs):
        self.study = optuna.create_study(direction="maximize", sampler=sampler_of(sampler, seed))
        self.space = {
            knob["id"]: IntDistribution(0, knob["levels"] - 1)
            if knob["ordered"]
            else CategoricalDistribution(list(range(knob["levels"])))
            for knob in knobs
        }
        self.open = []
        self.worst = None

    def tell(self, levels, value):
        if value is None:
            value = 0.0 if self.worst is None else self.worst
        else:
            self.worst = value if self.worst is None else min(self.worst, value)
        if self.open:
            self.study.tell(self.open.pop(0), value)
            return
        parameters = dict(zip(self.space, levels))
        self.study.add_trial(create_trial(params=parameters, distributions=self.space, value=value))

    def ask(self):
        trial = self.study.ask(self.space)
        self.open.append(trial)
        return [trial.params[name] for name in self.space]


def main():
    answer({"version": optuna.__version__})
    campaign = None
    for line in sys.stdin:
        message = json.loads(line)
        try:
            if "new" in message:
                campaign = Campaign(**message["new"])
                answer({})
            elif "tell" in message:
                campaign.tell(**message["tell"])
                answer({})
            else:
                answer({"levels": campaign.ask()})
        except ImportError as missing:
            answer({"missing": str(missing)})
        except Exception as fault:  # the other side decides what a fault means
            answer({"error": f"{type(fault).__name__}: {fault}"})


main()
