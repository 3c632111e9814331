"""Sources of networks: ONNX files, names of timm, factories, checkpoints, and what strangers put into files."""
