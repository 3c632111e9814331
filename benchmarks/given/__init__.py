"""Networks that arrive trained, with few pictures of their owner's."""
