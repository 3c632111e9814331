"""The files of a pool, as a device reads them (docs/design/runtime.md)."""

from autotailor.serving.files.index import CLASSES, INDEX, MEMBERS, NORMS, WEIGHTS, File, Index, Member, check_successor
from autotailor.serving.files.network import load_member
from autotailor.serving.files.opened import OpenPool, open_pool, whole_pool
from autotailor.serving.files.pieces import Norms, Piece, Slice, Tag, parse_pieces, pieces_text

__all__ = [
    "CLASSES",
    "INDEX",
    "MEMBERS",
    "NORMS",
    "WEIGHTS",
    "File",
    "Index",
    "Member",
    "Norms",
    "OpenPool",
    "Piece",
    "Slice",
    "Tag",
    "check_successor",
    "load_member",
    "open_pool",
    "parse_pieces",
    "pieces_text",
    "whole_pool",
]
