"""Mutations of ONNX files by reflection over the fields of their messages."""

from __future__ import annotations

import random
from typing import Any

import onnx
from google.protobuf.message import DecodeError, Message

from . import hostile, texts

_OPS = sorted({schema.name for schema in onnx.defs.get_all_schemas()})
_WIDTHS = {"INT32": 32, "INT64": 64, "ENUM": 31, "UINT64": 64}


def model(data: bytes, rng: random.Random) -> bytes:
    """A file with changed names, sizes, attributes, operators, nested graphs, external data."""
    if rng.random() < 0.1:
        return texts.damaged(data, rng)
    made = onnx.ModelProto()
    try:
        made.ParseFromString(data)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            _change(made, rng)
        return made.SerializeToString()
    except (DecodeError, ValueError, TypeError, OverflowError):  # a value that the field does not take
        return texts.damaged(data, rng)


def _messages(message: Message) -> list[Message]:
    """All messages in one, itself first."""
    found = [message]
    for one in found:
        for field, value in one.ListFields():
            if field.message_type is not None:
                found += list(value) if hasattr(value, "extend") else [value]
    return found


def _change(made: onnx.ModelProto, rng: random.Random) -> None:
    messages = _messages(made)
    if rng.random() < 0.5:  # each type of message as likely as others
        kinds = sorted({type(m).__name__ for m in messages})
        kind = rng.choice(kinds)
        messages = [m for m in messages if type(m).__name__ == kind]
    message = rng.choice(messages)
    present = [field for field, _ in message.ListFields()]
    fields = present if present and rng.random() < 0.85 else list(message.DESCRIPTOR.fields)
    field = rng.choice(fields)
    if isinstance(message, onnx.TensorProto) and rng.random() < 0.15:
        _external(message, rng)
    elif hasattr(getattr(message, field.name), "extend"):
        _repeated(made, message, field, rng)
    elif field.message_type is not None:
        same = [m for m in _messages(made) if m.DESCRIPTOR is field.message_type]
        if rng.random() < 0.3 or not same:
            message.ClearField(field.name)
        else:
            getattr(message, field.name).CopyFrom(_copy(rng.choice(same)))
    else:
        setattr(message, field.name, _value(made, message, field, getattr(message, field.name), rng))


def _copy(message: Message) -> Message:
    made = type(message)()
    made.CopyFrom(message)
    return made


def _repeated(made: onnx.ModelProto, message: Message, field: Any, rng: random.Random) -> None:
    values = getattr(message, field.name)
    kind = rng.randrange(6)
    if kind == 0 and len(values):
        del values[rng.randrange(len(values))]
    elif kind == 1:
        message.ClearField(field.name)
    elif field.message_type is not None:
        same = [m for m in _messages(made) if m.DESCRIPTOR is field.message_type]
        if same:
            values.append(_copy(rng.choice(same)))
            order = list(values)
            rng.shuffle(order)
            if kind == 2:
                copies = [_copy(m) for m in order]
                message.ClearField(field.name)
                getattr(message, field.name).extend(copies)
    elif kind == 2 and len(values):
        values.extend(list(values) * rng.choice((1, 3, 100)))
    elif len(values) and rng.random() < 0.8:
        at = rng.randrange(len(values))
        values[at] = _value(made, message, field, values[at], rng)
    else:
        values.append(_value(made, message, field, None, rng))


def _value(made: onnx.ModelProto, message: Message, field: Any, old: Any, rng: random.Random) -> Any:
    """A value of a field that is no message."""
    name = next(
        n
        for n in ("STRING", "BYTES", "FLOAT", "DOUBLE", "INT32", "INT64", "UINT64", "ENUM", "BOOL")
        if getattr(field, f"TYPE_{n}") == field.type
    )
    if name == "STRING":
        if field.name == "op_type" and rng.random() < 0.8:
            return rng.choice(_OPS + [f.name for f in made.functions])
        names = [m.name for m in _messages(made) if getattr(m, "name", "")] + [
            o for n in made.graph.node for o in n.output
        ]
        return rng.choice(names) if names and rng.random() < 0.5 else hostile.string(rng, old or "")
    if name == "BYTES":
        return (
            texts.damaged(old or b"x", rng)
            if rng.random() < 0.7
            else hostile.string(rng, "").encode("utf-8", "replace")
        )
    if name in ("FLOAT", "DOUBLE"):
        return rng.choice(hostile.FLOATS)
    if name == "ENUM" and field.enum_type is not None:
        return rng.choice([v.number for v in field.enum_type.values])
    if name == "BOOL":
        return rng.random() < 0.5
    if field.name in ("data_type", "elem_type") and rng.random() < 0.8:
        return rng.randrange(25)
    bits = _WIDTHS[name]
    number = hostile.integer(rng, old or 0)
    return (
        ((number + (1 << bits - 1)) % (1 << bits)) - (1 << bits - 1)
        if name != "UINT64"
        else number % (1 << 64)
    )


def _external(tensor: onnx.TensorProto, rng: random.Random) -> None:
    """The elements are in another file."""
    tensor.data_location = onnx.TensorProto.EXTERNAL
    del tensor.external_data[:]
    location = rng.choice(
        (
            "weights.bin",
            "../victim",
            "/etc/passwd",
            "/dev/zero",
            "net.onnx",
            "",
            ".",
            "\0",
            "sub/../weights.bin",
            "out",
            *hostile.STRINGS[:20],
        )
    )
    for key, value in (
        ("location", location),
        ("offset", str(rng.choice((0, 4, 4096, -1, 2**70, "x")))),
        ("length", str(rng.choice((0, 4, 64, -4, 2**40, "nan", "")))),
    ):
        if rng.random() < 0.8:
            tensor.external_data.add(key=key, value=value)
