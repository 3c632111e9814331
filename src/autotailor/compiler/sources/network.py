"""Networks of PyTorch by name: those of timm, and those that a factory of the user makes.

timm fetches pretrained weights from the Hugging Face hub. Without a network, the hub's client retries for a minute or
two before it uses earlier downloads. This module asks the hub once: if the hub does not answer, the client only uses
earlier downloads.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from huggingface_hub import constants, get_session
from huggingface_hub.errors import LocalEntryNotFoundError
from torch import nn

from autotailor.compiler.library import quiet, reason
from autotailor.ir.errors import GraphError
from autotailor.project.factory import FAILURES, find_factory, module_of, raised

CHECKPOINTS = (".pt", ".pth", ".ckpt", ".bin", ".safetensors")
"""Endings of files that hold weights."""

PATIENCE_S = 5.0


class FetchError(GraphError):
    """Trained weights cannot be fetched.

    Attributes:
        what: whose weights, and why, without a remedy.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what = what


def create_network(source: str, *, pretrained: bool = True, num_classes: int | None = None) -> nn.Module:
    """A module from ``timm:NAME`` or ``module:factory``.

    Args:
        source: ``timm:NAME`` or ``module:factory``.
        pretrained: whether a timm network gets its trained weights; otherwise they are random.
        num_classes: of the head, for timm and for factories with this parameter. Where timm's weights have another
            number of classes, the head is untrained.

    Raises:
        GraphError: the source does not exist or cannot be called.
        FetchError: timm's weights cannot be fetched.
    """
    if source.endswith(".onnx"):
        raise GraphError(
            f"source {source} is an ONNX file, which is not trained from scratch; set model.weights to null to take "
            f"the weights of the file, or name timm:NAME or module:factory as model.source"
        )
    prefix, _, rest = source.partition(":")
    if not rest:
        raise GraphError(
            f"source {source!r}: expected a path ending in .onnx, timm:NAME, or module:factory{_hint(source)}"
        )
    make = _call_factory if prefix != "timm" else _create_timm
    return make(prefix, rest, pretrained, num_classes)


def _hint(source: str) -> str:
    """What to write instead, for files of weights and of code, which are often given as a source."""
    name = source.removesuffix(".tar")
    if name.endswith(CHECKPOINTS):
        return (
            f". A checkpoint holds weights and not the network that they belong to: give that network as the source, "
            f"and the file as its weights (model.weights: {source} in the configuration, --weights {source} of inspect)"
        )
    if name.endswith(".py"):
        return f". Name the function in the file that makes the network, as {module_of(source)}:FUNCTION"
    return ""


def _create_timm(_: str, name: str, pretrained: bool, num_classes: int | None) -> nn.Module:
    import timm

    _check_name(name)
    try:
        with quiet(), hub() if pretrained else nullcontext():
            chosen: dict[str, Any] = {} if num_classes is None else {"num_classes": num_classes}
            network: nn.Module = timm.create_model(name, pretrained=pretrained, **chosen)
    except Exception as error:
        raise FetchError(
            f"the pretrained weights of timm's {name} could not be fetched ({type(error).__name__}: {reason(error)})",
            "download them on a machine with a network and set model.weights to the file, or give the trained network "
            "as an .onnx file; "
            "`inspect --random-weights` shows the network's structure without its weights",
        ) from error
    return network


def _check_name(name: str) -> None:
    """Raises GraphError where timm has no model of a name."""
    import timm

    if not timm.is_model(name):
        close = timm.list_models(f"*{name.split('_')[0]}*")[:8]
        raise GraphError(f"timm has no model {name!r}; similar names: {', '.join(close) or 'none'}")


def pretrained_config(source: str) -> Any:
    """What timm knows of the weights of ``timm:NAME``, without fetching them; None where it knows of none.

    Raises:
        GraphError: timm has no model of this name.
    """
    import timm

    name = source.removeprefix("timm:")
    _check_name(name)
    return timm.get_pretrained_cfg(name, allow_unregistered=True)


def check_own_head(source: str, num_classes: int | None) -> None:
    """Refuses timm's own weights for another number of classes than theirs, because the head would be random."""
    if num_classes is None or not source.startswith("timm:"):
        return
    config = pretrained_config(source)
    if config is not None and config.num_classes not in (None, 0, num_classes):
        raise GraphError(
            f"source {source}: its own weights have {config.num_classes} classes, model.num_classes is {num_classes}, "
            f"so that its head would be untrained; set model.weights to a checkpoint of {num_classes} classes, or to "
            f"pretrain, with a pretrain section (conf/model/resnet_digits.yaml), to train it on the data"
        )


def _call_factory(module: str, factory: str, _: bool, num_classes: int | None) -> nn.Module:
    function = find_factory(f"{module}:{factory}", f"source {module}:{factory}", GraphError)
    chosen = {"num_classes": num_classes} if num_classes is not None and _takes_classes(function) else {}
    try:
        made: Any = function(**chosen)
    except FAILURES as error:
        raise GraphError(
            f"source {module}:{factory} failed with {raised(error)}; expected a function that makes the network "
            f"without arguments"
        ) from error
    if not isinstance(made, nn.Module):
        raise GraphError(f"source {module}:{factory}: it made a {type(made).__name__}, not a torch.nn.Module")
    return made


def _takes_classes(function: Any) -> bool:
    """Whether a factory has a parameter ``num_classes``, or those of timm and torchvision that pass it on."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # a builtin without a signature
        return False
    passes_on = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    library = str(getattr(function, "__module__", "")).split(".")[0] in ("timm", "torchvision")
    return "num_classes" in parameters or (passes_on and library)


@contextmanager
def hub() -> Iterator[None]:
    """Inside this context the hub's client is in offline mode if the hub does not answer.

    Raises:
        ConnectionError: the hub does not answer, and there is no earlier download of the weights.
    """
    configured = constants.HF_HUB_OFFLINE
    offline = configured or not _answers()
    constants.HF_HUB_OFFLINE = offline
    try:
        yield
    except LocalEntryNotFoundError:
        if configured or not offline:
            raise
        raise ConnectionError(f"{constants.ENDPOINT} does not answer, and no earlier download is there") from None
    finally:
        constants.HF_HUB_OFFLINE = configured


def _answers() -> bool:
    """Whether the hub answers a request at all."""
    try:
        get_session().head(constants.ENDPOINT, timeout=PATIENCE_S)
    except Exception:  # the kind of error depends on the client's HTTP library
        return False
    return True
