"""Export of a SubNet to files that run without autotailor."""

from autotailor.export.accuracy import accuracy_of_onnx
from autotailor.export.deployable import Deployable, deployable, inherited, polished
from autotailor.export.files import ExportError, export
from autotailor.export.verification import Comparison, Verification

__all__ = [
    "Comparison",
    "Deployable",
    "ExportError",
    "Verification",
    "accuracy_of_onnx",
    "deployable",
    "export",
    "inherited",
    "polished",
]
