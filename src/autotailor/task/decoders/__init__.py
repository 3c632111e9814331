"""Decoders of usual heads: ordinary functions that ``data.decode`` may name, and that functions of a user may call.

``decode(outputs, size)`` takes what a network returns for images of ``size`` times ``size`` pixels, a tensor or a
tuple, and gives for each image ``boxes`` [m, 4] (left, top, right, bottom in pixels of that image), ``scores`` [m] from
0 to 1, and ``labels`` [m], the numbers of the data's classes.
"""
