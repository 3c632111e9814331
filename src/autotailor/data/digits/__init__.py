"""The images of the embedded default: distorted handwritten digits."""
