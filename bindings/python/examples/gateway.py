"""A gateway that swaps models: requests for the model that is loaded run together, those for another wait.

The room is shared by all processes of the machine, so several gateways and jobs from a shell
(`grouplock run gpu0 "model A" -- …`) take turns too. `batch:20` lets up to 20 requests for the model
that is loaded overtake one for another: few swaps, and nobody waits for ever.

    python gateway.py [REQUESTS]
"""

import asyncio
import random
import sys
import tempfile
import time

import grouplock


class Gpu:
    """What is shared. Loading takes long, using it does not."""

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
        # Whoever finds another model loads; those of the same session wait for that, nobody else is inside.
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
