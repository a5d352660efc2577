"""What tests of programs that use Tollgate need.

>>> import tollgate as tg
>>> from tollgate.testing import ManualClock
>>> clock = ManualClock()
>>> limits = tg.LimitSet([tg.per_minute("rpm", 1)], clock=clock)
>>> bool(limits.try_acquire(rpm=1)), bool(limits.try_acquire(rpm=1))
(True, False)
>>> clock.advance(60)
>>> bool(limits.try_acquire(rpm=1))
True
"""

from ._core import ManualClock

__all__ = ["ManualClock"]
