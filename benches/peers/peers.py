#!/usr/bin/env python3
"""The other side of `exactile bench`: kernels of other libraries, measured on request.

    peers.py gpu|cpu

Reads one JSON object a line from standard input and answers each with one line on standard output:

    {"do": "hello"}                                         libraries with versions, what is missing
    {"do": "prepare", kernel, dtype, shape, seconds}        makes inputs, compiles: peers, failed
    {"do": "tune", seconds, bursts}                         chooses configurations: peers, failed
    {"do": "round", peer, seconds, burst}                   the median time of a launch, in ms
    {"do": "copy", elements, seconds}                       the same for a copy of f32
    {"do": "free"}                                          forgets the kernel

With a burst of null each launch is timed by itself. A burst has the seconds of `rest`, of launches that are
`untimed`, and of those that are `timed` right behind them; `bursts` says whether there will be any.
An answer with "error" says what went wrong; "failed" has the reasons of peers without figures.
A side is a module with `libraries()`, `Clock`, for bursts `Recorded`,
`contestants(kernel, dtype, shape)`, `copies(elements)` and `free()`.
"""

import importlib
import json
import os
import statistics
import sys
import time
import traceback
from dataclasses import dataclass, field
from typing import Callable

FINALISTS = 4
QUICK, SURE = 0.005, 0.04
# Seconds of launches that are replayed at once.
RECORDED = 0.0025


@dataclass
class Contestant:
    """A kernel of a library: `launch(**config)` for any of its configurations."""

    launch: Callable
    configs: list = field(default_factory=lambda: [{}])
    # Raises when the results of the last launch are wrong.
    check: Callable = lambda: None
    chosen: dict = None
    working: list = None
    failed: list = field(default_factory=list)
    # Many launches with the chosen configuration, to be replayed.
    recorded: object = None

    def compile(self, deadline):
        """Runs every configuration once and drops those that fail."""
        self.working = []
        for config in self.configs:
            if self.working and time.monotonic() > deadline:
                break
            try:
                self.launch(**config)
                if not self.working:
                    self.check()
                self.working.append(config)
            except Exception as error:  # any kernel may be refused by its compiler
                self.failed.append(f"{config}: {type(error).__name__}: {str(error)[:300]}")

    def tune(self, clock):
        """Chooses the fastest configuration: all in short, the best ones for longer."""
        timed = []
        for number, config in enumerate(self.working):
            launch = lambda: self.launch(**config)
            timed.append((median_ms(clock, launch, QUICK), number, config))
        finalists = sorted(timed)[:FINALISTS]
        timed = []
        for _, number, config in finalists:
            launch = lambda: self.launch(**config)
            timed.append((median_ms(clock, launch, SURE), number, config))
        for _, _, config in sorted(timed):
            try:
                self.launch(**config)
                self.check()
                self.chosen = config
                return
            except Exception as error:
                self.failed.append(f"{config}: {type(error).__name__}: {str(error)[:300]}")
        raise RuntimeError(f"none of the best is right: {self.failed[-1]}")

    def report(self):
        search = {"measured": len(self.working), "candidates": len(self.configs),
                  "failed": len(self.failed), "reason": (self.failed or [None])[0]}
        return {**self.chosen, "search": search}


def median_of(measure, seconds):
    """The median of measurements over about the given time, at least 3 and at most 400."""
    begin, times = time.monotonic(), []
    while len(times) < 3 or (time.monotonic() - begin < seconds and len(times) < 400):
        times.append(measure())
    return statistics.median(times)


def median_ms(clock, launch, seconds):
    return median_of(lambda: clock.time_ms(launch), seconds)


class Peers:
    def __init__(self, side):
        self.side, self.clock, self.contestants = side, None, {}

    def hello(self):
        libraries, missing = self.side.libraries()
        if libraries:
            self.clock = self.side.Clock()
        return {"libraries": libraries, "missing": missing}

    def prepare(self, kernel, dtype, shape, seconds):
        self.contestants, failed = {}, {}
        found = self.side.contestants(kernel, dtype, shape)
        begin = time.monotonic()
        for number, (name, contestant) in enumerate(found.items()):
            # Fixed functions take no time; the others share what is left.
            share = (seconds - (time.monotonic() - begin)) / (len(found) - number)
            contestant.compile(time.monotonic() + share)
            if contestant.working:
                self.contestants[name] = contestant
            else:
                failed[name] = contestant.failed[0]
        return {"peers": list(self.contestants), "failed": failed}

    def tune(self, seconds, bursts):
        chosen, failed = {}, {}
        for name, contestant in self.contestants.items():
            try:
                contestant.tune(self.clock)
                if bursts:
                    launch = lambda: contestant.launch(**contestant.chosen)
                    contestant.recorded = self.side.Recorded(launch, RECORDED)
                chosen[name] = contestant.report()
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {str(error)[:300]}"
        return {"peers": chosen, "failed": failed}

    def round(self, peer, seconds, burst):
        contestant = self.contestants[peer]
        launch = lambda: contestant.launch(**contestant.chosen)
        if burst is None:
            return {"ms": median_ms(self.clock, launch, seconds)}
        return {"ms": median_of(lambda: contestant.recorded.time_ms(**burst), seconds)}

    def copy(self, elements, seconds):
        launches = self.side.copies(elements)
        times = []
        for launch in launches:
            launch()
            times.append(median_ms(self.clock, launch, seconds))
        return {"ms": min(times)}

    def free(self):
        self.contestants = {}
        self.side.free()
        return {}


def main():
    sides = {"gpu": "torch_triton", "cpu": "numpy_numba"}
    if len(sys.argv) != 2 or sys.argv[1] not in sides:
        sys.exit(__doc__.split("\n\n")[1])
    # Only answers may go to standard output, whatever a library prints.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    peers = Peers(importlib.import_module(sides[sys.argv[1]]))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(peers, request.pop("do"))(**request)
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            answer = {"error": f"{type(error).__name__}: {str(error)[:1000]}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
