"""TailorIR: graph, dimensions, operators, blocks, space, fusion, metrics, execution (paper, section 4.1)."""
