# SPDX-License-Identifier: Apache-2.0
"""What pools do: messages through each routing, a crowd of connections, work for CPUs, and short messages beside a long one."""

import time

import harness

SENDS = 500 * 4096
CROWD = 500_000
ROUND_TRIPS = 20_000
# Of one long message, and of each of those that are work for CPUs.
LONG_SECONDS = 1
CHUNKS, CHUNK_SECONDS = 40, 0.01
ROUTINGS = ["round-robin", "smallest-mailbox", "random", "shared"]


class Pools:
    """Starts pools in one daemon, each for one measurement. `measured` runs a measuring program."""

    def __init__(self, daemon, measured):
        self.socket, self.measured = daemon.socket, measured
        self.client = harness.Client(daemon.socket)
        self.ledger = self.client.request("spawn", "pools:Ledger", [])
        self.spins_per_second = self.calibrate()

    def start(self, workers, routing):
        handle = self.client.request("pool", "bench", "pools:Worker", [self.ledger], {"workers": workers, "routing": routing})
        while self.client.request("info", handle)["running"] < workers:
            pass
        return handle

    def stop(self, handle, handled):
        """Ends it, and sees that its workers have handled as many as were asked for."""
        self.client.request("stop", handle)
        self.client.request("done", handle)
        counted = self.client.request("ask", self.ledger, "take", [])
        if counted != handled:
            raise RuntimeError(f"{counted} of {handled} messages were handled")

    def calibrate(self):
        """How often `spin` turns in a second."""
        handle, spins = self.start(1, "shared"), 20_000_000
        began = time.perf_counter()
        self.client.request("ask", handle, "spin", [spins])
        took = time.perf_counter() - began
        self.stop(handle, 0)
        return spins / took

    def through(self, routing):
        """Messages through a pool of 4, per second: sent, and all of them handled."""
        handle = self.start(4, routing)
        result = self.measured("sends", self.socket, handle, SENDS)
        counted = self.client.request("ask", self.ledger, "take", [])
        if counted != SENDS:
            raise RuntimeError(f"{counted} of {SENDS} messages were handled")
        return result

    def crowd(self):
        """50 connections with 32 asks outstanding each, over 2 workers."""
        handle = self.start(2, "round-robin")
        result = self.measured("crowd", self.socket, handle, 50, 32, CROWD)
        self.stop(handle, result["answered"])
        return result

    def work(self, workers):
        """How long the same work takes."""
        handle, spins = self.start(workers, "shared"), int(self.spins_per_second * CHUNK_SECONDS)
        began = time.perf_counter()
        asked = [self.client.start("ask", handle, "spin", [spins]) for _ in range(CHUNKS)]
        for sent in asked:
            self.client.finish(sent)
        took = time.perf_counter() - began
        self.stop(handle, 0)
        return {"took_ms": took * 1000}

    def short(self, routing, beside_a_long_one):
        """Short messages to 2 workers, one outstanding, with both free or with one of them in a long message."""
        handle = self.start(2, routing)
        spin = [int(self.spins_per_second * LONG_SECONDS)] if beside_a_long_one else []
        result = self.measured("beside", self.socket, handle, ROUND_TRIPS if not spin else ROUND_TRIPS * 50, *spin)
        self.client.request("stop", handle)
        self.client.request("done", handle)
        self.client.request("ask", self.ledger, "take", [])
        return result

    def measure(self):
        """Everything once."""
        return {
            **{f"pool {routing}": self.through(routing) for routing in ROUTINGS},
            "pool crowd": self.crowd(),
            "work 1 worker": self.work(1),
            "work 2 workers": self.work(2),
            "short alone": self.short("shared", False),
            "short shared": self.short("shared", True),
            "short alone in turn": self.short("round-robin", False),
            "short in turn": self.short("round-robin", True),
        }
