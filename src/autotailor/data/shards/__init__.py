"""WebDataset shards: tar files that hold pictures beside their labels."""
