"""What the tests of the names of async-batch-llm share."""

from __future__ import annotations

import asyncio

from tollgate.compat import batch_llm as bl

OURS, THEIRS = "tollgate.compat.batch_llm", "async_batch_llm"
NO_WAIT = {"initial_wait": 0.001, "max_wait": 0.002}


class StatusError(Exception):
    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status_code = status


def strategy_of(module, function, **options):
    """A strategy from an asynchronous function of the prompt, the attempt and the state."""

    async def invoke(prompt, *, attempt, timeout, state):
        found = await function(prompt, attempt, state)
        return found if isinstance(found, module.CallOutcome) else module.CallOutcome(found, token_usage={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5})

    return module.CallableStrategy(invoke, **options)


def ours(function, prompts, config=None, **options):
    return asyncio.run(bl.process_prompts(strategy_of(bl, function), prompts, config=config, **options))


async def upper(prompt, attempt, state):
    return prompt.upper()
