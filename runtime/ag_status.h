/* The statuses that the functions of a generated program return, as its header names them, in words. */
#ifndef AG_STATUS_H
#define AG_STATUS_H

enum {
    AG_STATUS_MORE = 1, /* train_part: call again, with the same arguments */
    AG_STATUS_OK = 0,
    AG_STATUS_NULL = -1,
    AG_STATUS_BATCH = -2,
    AG_STATUS_LABEL = -3,
    AG_STATUS_IO = -4,
    AG_STATUS_CHECKPOINT = -5,
    AG_STATUS_INPUT = -6,
    AG_STATUS_LOSS = -7,
    AG_STATUS_BUSY = -8,
    AG_STATUS_GRADIENTS = -9,
    AG_STATUS_ALIGNMENT = -10,
    AG_STATUS_PROGRAM = -11,
    AG_STATUS_FORMAT = -12
};

static inline const char *ag_strstatus(int status) {
    switch (status) {
    case AG_STATUS_MORE:
        return "more parts of the step are to come";
    case AG_STATUS_OK:
        return "ok";
    case AG_STATUS_NULL:
        return "a pointer is NULL";
    case AG_STATUS_BATCH:
        return "the number of samples is out of range";
    case AG_STATUS_LABEL:
        return "a label or index is out of range";
    case AG_STATUS_IO:
        return "a read or write callback failed";
    case AG_STATUS_CHECKPOINT:
        return "the checkpoint is damaged or belongs to another model";
    case AG_STATUS_INPUT:
        return "an input, a target or the learning rate is not finite";
    case AG_STATUS_LOSS:
        return "the loss is not finite";
    case AG_STATUS_BUSY:
        return "a step is not finished";
    case AG_STATUS_GRADIENTS:
        return "the updates cannot be proved finite";
    case AG_STATUS_ALIGNMENT:
        return "the memory of a region is not aligned to 4 bytes";
    case AG_STATUS_PROGRAM:
        return "the checkpoint is of another program";
    case AG_STATUS_FORMAT:
        return "the checkpoint has another format";
    default:
        return "unknown status";
    }
}

#endif
