"""SubNets that run: weights sliced, PyTorch modules, ONNX files, BatchNorm, importance of channels."""
