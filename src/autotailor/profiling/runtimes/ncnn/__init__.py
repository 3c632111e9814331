"""The runtimes ``ncnn`` and ``ncnn-compiled``: fusion rules, layers, conversion by pnnx, replicas, whole networks."""
