"""The clock of a machine that does other things as well tells little; that of the processor tells what was done."""

import resource


def seconds_of_children() -> float:
    """Seconds of the processor that the processes which this one started, and waited for, have used so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
