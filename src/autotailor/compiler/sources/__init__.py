"""Sources of networks: ONNX files, names of timm, factories, and checkpoints, with checks of untrusted files."""
