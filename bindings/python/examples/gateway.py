"""A gateway that swaps models. Requests for the loaded model run together, requests for another model wait.

This example has a place of its own. Without `at`, all processes of the user share the room: several gateways, and
jobs from a shell (`grouplock run gpu0 "model A" -- …`). With `batch:20`, up to 20 requests for the
loaded model overtake a request for another model. So there are few swaps, and no request waits forever.

    python gateway.py [REQUESTS]
"""

import asyncio
import random
import sys
import tempfile
import time

import grouplock


class Gpu:
    """The shared resource. Loading takes long, using it does not."""

    def __init__(self, room):
        self.room = room
        self.model = None
        self.swaps = 0
        self.most = self.inside = 0

    async def load(self, model):
        assert self.inside == 0, "another model is in use"
        await asyncio.sleep(0.05)
        self.model = model
        self.swaps += 1

    async def infer(self, model, prompt):
        # A request that finds another model loads its own, alone. Other requests for this model wait for that.
        async with self.room.enter_async(model, timeout=60, set_up=lambda: self.load(model)):
            self.inside += 1
            self.most = max(self.most, self.inside)
            await asyncio.sleep(0.005)
            assert self.model == model, "the model was swapped while it was in use"
            self.inside -= 1
            return f"{model} answers {prompt}"


async def main(requests):
    with tempfile.TemporaryDirectory() as place:
        gpu = Gpu(grouplock.Room("gpu0", at=place, policy="batch:20"))
        began = time.monotonic()
        models = [random.choice(["model A", "model B", "model C"]) for _ in range(requests)]
        await asyncio.gather(*(gpu.infer(model, number) for number, model in enumerate(models)))
        took = time.monotonic() - began
        print(f"{requests} requests, {gpu.swaps} swaps, at most {gpu.most} at a time, {took:.1f} s")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
