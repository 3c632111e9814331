"""ONNX files that no exporter writes: random bytes, files cut off, changed bytes, and changed fields."""

from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import strategies as st

INTEGERS = st.one_of(
    st.sampled_from([-1, 0, 1, 2, 3, 7, 16, 255, 2**16, 2**31 - 1, -(2**31)]), st.integers(-(2**31), 2**31 - 1)
)
LONG = st.one_of(INTEGERS, st.sampled_from([2**31, 2**40, 2**62, 2**63 - 1, -(2**63)]))
WORDS = st.sampled_from(
    ["", "x", "input", "output", "Conv", "Relu", "Add", "Mul", "Reshape", "Softmax", "Split", "Concat", "Slice", "Pad",
     "MaxPool", "AveragePool", "Resize", "Expand", "Tile", "Range", "ConstantOfShape", "Gather", "Loop", "If", "Scan",
     "Einsum", "MatMul", "Gemm", "BatchNormalization", "LSTM", "QuantizeLinear", "NonZero", "SequenceConstruct",
     "../secret", "/etc/passwd", "ai.onnx.ml", "SAME_UPPER", "é", "a" * 300]
)  # fmt: skip
OF_OPERATORS = frozenset(
    {"i", "f", "s", "ints", "floats", "input", "op_type", "attribute", "node", "dim_value", "dims"}
)
KINDS = st.sampled_from(sorted({schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}))
FLOATS = st.sampled_from([0.0, -1.0, 1e30, float("nan"), float("inf"), 0.5])
CUTS = st.floats(0, 1)
SAYING_NOTHING = frozenset({"doc_string", "producer_name", "producer_version", "value_info", "domain"})


def fields_of(message: Message) -> list[tuple[Message, FieldDescriptor]]:
    """Every field of a message and of the messages inside it, except fields that only people read."""
    found = []
    for field, value in message.ListFields():
        if field.name not in SAYING_NOTHING:
            found.append((message, field))
        if field.message_type is not None:
            for part in [value] if isinstance(value, Message) else value:
                found += fields_of(part)
    return found


def _value(draw: st.DrawFn, field: FieldDescriptor, model: onnx.ModelProto) -> Any:
    kinds = FieldDescriptor
    if field.cpp_type in (kinds.CPPTYPE_INT32, kinds.CPPTYPE_ENUM):
        return draw(INTEGERS)
    if field.cpp_type in (kinds.CPPTYPE_INT64, kinds.CPPTYPE_UINT64):
        drawn = draw(LONG)
        return drawn if field.cpp_type == kinds.CPPTYPE_INT64 else abs(drawn)
    if field.cpp_type in (kinds.CPPTYPE_FLOAT, kinds.CPPTYPE_DOUBLE):
        return draw(FLOATS)
    if field.name in ("input", "output") and draw(st.integers(0, 3)):
        names = [name for node in model.graph.node for name in (*node.input, *node.output)]
        return draw(st.sampled_from(names or [""]))
    text = draw(KINDS if field.name == "op_type" else WORDS)
    return text if field.type == kinds.TYPE_STRING else text.encode()


def change_field(draw: st.DrawFn, model: onnx.ModelProto) -> None:
    """Removes, repeats or replaces one field of a model, in most cases a field of an operator."""
    fields = fields_of(model)
    operators = [(message, field) for message, field in fields if field.name in OF_OPERATORS]
    fields = operators if operators and draw(st.integers(0, 3)) else fields
    if not fields:
        return
    message, field = fields[draw(st.integers(0, len(fields) - 1))]
    value = getattr(message, field.name)
    is_repeated = not isinstance(value, Message) and hasattr(value, "extend")
    action = draw(st.sampled_from(["clear", "repeat", "replace", "replace", "replace"]))
    if action == "clear":
        message.ClearField(field.name)
    elif is_repeated and len(value):
        place = draw(st.integers(0, len(value) - 1))
        if action == "repeat":
            value.extend([value[place]])
        elif field.message_type is not None or draw(st.booleans()):
            del value[place]
        else:
            value[place] = _value(draw, field, model)
    elif field.message_type is None and not is_repeated:
        try:
            setattr(message, field.name, _value(draw, field, model))
        except ValueError:  # protobuf refuses numbers that this enumeration does not have
            message.ClearField(field.name)


@st.composite
def changed_fields(draw: st.DrawFn, original: bytes) -> bytes:
    """A model with one to three fields changed."""
    model = onnx.load_from_string(original)
    for _ in range(draw(st.integers(1, 3))):
        change_field(draw, model)
    return model.SerializeToString()


@st.composite
def changed_bytes(draw: st.DrawFn, original: bytes) -> bytes:
    """A file of which one to three pieces are cut out, repeated or overwritten, or into which bytes are put."""
    content = original
    for _ in range(draw(st.integers(1, 3))):
        first = round(draw(CUTS) * len(content))
        last = min(len(content), first + draw(st.integers(0, 64)))
        inside = draw(st.one_of(st.binary(max_size=16), st.just(content[first:last] * 2), st.just(b"")))
        content = content[:first] + inside + content[last:]
    return content


@st.composite
def cut_off(draw: st.DrawFn, original: bytes) -> bytes:
    """The beginning of a file."""
    return original[: round(draw(CUTS) * len(original))]


def strange_files(original: bytes) -> st.SearchStrategy[bytes]:
    """Contents of files that claim to be ONNX, most of them close to a real one."""
    far = st.one_of(st.binary(max_size=200), cut_off(original), changed_bytes(original))
    return st.integers(0, 7).flatmap(lambda number: far if number == 0 else changed_fields(original))
