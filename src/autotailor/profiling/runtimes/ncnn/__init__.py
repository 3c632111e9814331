"""ncnn: fusion rules, layers, conversion by pnnx, replicas, whole networks. The registry opens ``runtime.py``."""
