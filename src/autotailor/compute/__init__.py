"""Where networks are computed: accelerators, the placement of tensors, memory, and work side by side or in turn."""
