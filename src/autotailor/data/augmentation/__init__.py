"""Augmentation of training images beyond crop and flip: policies of single images, and mixtures of two images."""
