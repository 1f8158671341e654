"""Errors of the board link: status numbers and exceptions."""

from __future__ import annotations

from ..errors import AutodiffError, DataError

# The statuses of runtime/ag_link.h, ag_store.h and ag_status.h, each with a fix where there is one.
STATUS = {
    0: "ok",
    -1: "a pointer is NULL",
    -2: "the number of samples is below 1 or above the batch",
    -3: "a label or index is out of range",
    -4: "a read or write callback failed",
    -5: "the checkpoint is damaged or belongs to another model",
    -10: "the memory of a region is not aligned to 4 bytes",
    -11: "the checkpoint is of another program",
    -12: "the checkpoint has another format",
    -6: "an input, a target or the learning rate is not finite",
    -7: "the loss is not finite",
    -8: "a step is not finished",
    -9: "the updates cannot be proved finite",
    -32: "the board does not know this request",
    -33: "a request of the wrong length",
    -34: "a number in the request is out of range: an address, a count, n or a rate",
    -35: "not the session that HELLO began",
    -36: "another request with the number of the last one",
    -37: "another version of the protocol",
    -38: "the request names another step than the board's next one",
    -39: "the data do not have the checksum that the request names",
    -40: "the board's weights are half written, or were written without BEGIN: push again, load a checkpoint, or reset",
    -42: "the board cannot read the file of the inputs",
    -43: "the board is in another round, or had a later one: begin a round with a higher number, or reset the board by "
    "INIT, as fleet --fresh does",
    -44: "the round began on this board with other weights: begin the next round",
    -45: "the board has no samples to train on, or records that are not as long as the model's inputs and targets (of "
    "a whole batch, where its batch is fixed): put samples.bin into the folder of the firmware, or link a set into "
    "flash",
    -46: "weights of the board are not finite: begin the next round",
    -47: "the board has no source of random numbers for the noise, or its source fails: write ag_system_random for its "
    "chip, or leave out the noise",
    -48: "the round began on this board with other options, clipping or noise: begin the next round",
    -49: "the board has another identity already",
    -50: "the model has no classes that an evaluation could compare",
    -51: "the board has other sums of gradients than the request names",
    -52: "the board's weights are not the weights of this run: the board was restarted, or another program trains it",
    -64: "there is no good checkpoint",
    -65: "the checkpoints belong to another model",
    -66: "the checkpoints have a later format: build and upload newer firmware, or erase the flash",
    -67: "a checkpoint is larger than a slot of the flash",
    -68: "the flash is worn: what was programmed does not read back",
    -69: "the flash cannot be read",
    -70: "the state changed while it was saved",
    -71: "the model rejected the checkpoint",
    -72: "this board has no flash for checkpoints",
    -73: "the file has another size than the flash of this firmware: train --fresh replaces it; or move it to another "
    "folder",
    -74: "the checkpoints are of another program, with other operations, loss or optimizer: train --fresh starts with "
    "the initial weights, train --continue goes on from the weights of the newest checkpoint",
    -75: "the checkpoints have an earlier format, which this version does not read",
    -76: "the checkpoint is damaged, or its write was interrupted: train starts with the initial weights, push with "
    "weights of a file",
}
LINK = -32  # this status and lower ones are not the model's
LOSS, GRADIENTS = -7, -9  # rejections that the board's own state may cause
SESSION, SEQUENCE, VERSION, STEP, SUM = -35, -36, -37, -38, -39
ROUND = -43
SUMS, OTHER_WEIGHTS = -51, -52
NO_CHECKPOINT, NO_FLASH, FLASH_SIZE, OTHER_PROGRAM, DAMAGED = -64, -72, -73, -74, -76


class LinkError(AutodiffError):
    """The connection fails: no port, no reply, or other firmware."""


class Unreachable(LinkError):
    """No board answers there now; one may later."""


class Broken(Unreachable):
    """The connection broke, for example because the board restarts."""


class OtherArrays(DataError):
    """A data set that has other arrays, or another number of columns, than the model takes."""


class DeviceError(AutodiffError):
    """The board rejected a request. `what`: the request, `status`: the number in the reply."""

    def __init__(self, what: str, status: int) -> None:
        super().__init__(f"{what}: {STATUS.get(status, 'unknown status')} (status {status})")
        self.what, self.status = what, status


class WentBack(DeviceError):
    """The board rejected steps and restored its last checkpoint, saved after step `steps`."""

    def __init__(self, steps: int, status: int = LOSS) -> None:
        super().__init__(f"the step was rejected, and the board went back to step {steps:,}", status)
        self.steps = steps
