"""`autodiff-gen fleet --server http://...`: the boards do the tasks of a server of NVFlare, which keeps the weights."""

from __future__ import annotations

import argparse
import platform

from ..device.train_command import INTERRUPTED
from .folder import held, remove
from .gateway import Gateway
from .nvflare import EtaDevice
from .twin_states import name_of, stored


def tasks(args: argparse.Namespace) -> int:
    """Do the tasks; returns the exit code: 0 where the server has no more, 130 after Ctrl-C."""
    gateway = Gateway(args)
    name = gateway.program.name
    with held(gateway.out):
        if args.fresh:
            remove(gateway.out, name_of)
        print(gateway.heading(), flush=True)
        with gateway.members(fresh=args.fresh) as members:
            device = EtaDevice(
                args.server,
                args.job or name,
                args.device or f"{platform.node()}-{name}",
                stored(members, gateway.out),
                gateway.program,
                gateway.settings,
                args.timeout,
            )
            try:
                for task in device.tasks():
                    print(task, flush=True)
            except KeyboardInterrupt:
                return INTERRUPTED
    print(f"{args.server} has no more tasks")
    return 0
