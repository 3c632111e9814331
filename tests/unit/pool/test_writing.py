"""Pools of real SubNets: written, verified against the SuperNet, refused where they are wrong."""

import json
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import autotailor
from autotailor.ir.execution.modules.moments import MomentCollector
from autotailor.ir.junctions import kind_of
from autotailor.ir.space.subnet import SubNet
from autotailor.pool import plan
from autotailor.pool.exported import ExportedMember
from autotailor.pool.verification import run_exits
from autotailor.pool.writing import Facts, Origin, write_pool
from autotailor.serving import PoolError
from autotailor.serving.files import open_pool
from pool_members import export, facts, some_subnets, supernet

ORIGIN = Origin("tiny", "host", 1, {"use_fp16_storage": False})
ALTERNATIVES = {
    "alternatives": {"low_rank": [0.5], "depthwise": True, "merged": [1, 2]},
    "rebuilt": {"shrunk": [0.5, 0.25], "ghost": [2], "fire": True, "merged": [1]},
}
Members = tuple[autotailor.SuperNet, list[tuple[ExportedMember, Facts]]]


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Members:
    """Three SubNets of the small ResNet, exported."""
    net, folder = supernet("resnet"), tmp_path_factory.mktemp("members")
    exported = [export(net, subnet, folder / subnet.id) for subnet in some_subnets(net, 3)]
    return net, [(each, facts(number)) for number, each in enumerate(exported)]


def in_closed_form(net: autotailor.SuperNet) -> autotailor.SuperNet:
    collector = MomentCollector(net.elastic)
    with torch.no_grad():
        collector(torch.randn(16, 3, 32, 32, generator=torch.Generator().manual_seed(0)))
    return net.with_moments(collector.moments())


def test_weights_in_closed_form_are_stored_once_for_each_choice() -> None:
    net = in_closed_form(supernet("mobilenet"))
    one = SubNet.from_assignment(net.space, {"block3.expand_ratio": 2, "stage1.width": 0.5})
    others = [SubNet.from_assignment(net.space, {**one.assignment, **more}) for more in ({"block1.kernel_size": 3}, {})]
    names = {each.tensor for each in plan.candidates_of(net, one)}
    assert names == {each.tensor for each in plan.candidates_of(net, others[1])}
    more = {each.tensor for each in plan.candidates_of(net, others[0])} - names
    taps = [reader.weight for reader in net.elastic.readers.values() if reader.depthwise]
    assert len(more) == 1
    assert more.pop().split(" ")[0] in taps
    solved = {each.tensor: each.solved for each in plan.candidates_of(net, one) if each.solved is not None}
    assert names - net.graph.weights.keys() == solved.keys() != set()


@pytest.mark.parametrize(
    "name",
    [
        *("mobilenet", "mobilenet, solved", "grouped", "transformer", "shuffled", "resnet_digits"),
        *("vit_digits, solved", "resnet, alternatives", "resnet, rebuilt", "mobilenet, rebuilt"),
    ],
)
def test_every_member_answers_as_the_supernet(tmp_path: Path, name: str) -> None:
    name, *words = name.split(", ")
    net = supernet(name, next((ALTERNATIVES[word] for word in words if word in ALTERNATIVES), None))
    net = in_closed_form(net) if "solved" in words else net
    found = [export(net, subnet, tmp_path / subnet.id) for subnet in some_subnets(net, 3)]
    taken = {kind_of(choice) for each in found for choice in each.subnet.assignment.values()} - {""}
    assert bool(taken & {"shrunk", "ghost", "fire"}) == ("rebuilt" in words)
    document = write_pool(tmp_path / "pool", net, [(each, facts(i)) for i, each in enumerate(found)], ORIGIN)
    assert [member["subnet"] for member in document["members"]] == [each.subnet.id for each in found]
    pool = open_pool(tmp_path / "pool")
    for member, own in zip(pool.index.members, found, strict=True):
        answers = run_exits(pool, member, own.images)[-1]
        assert np.abs(answers - own.logits).max() <= 1e-4 * np.abs(own.logits).max()
        assert pool.size(member) == own.weights.stat().st_size
    shared = pool.index.weights.bytes + pool.index.norms.bytes
    assert shared < sum(own.weights.stat().st_size for own in found)


def test_a_member_is_refused_where_the_supernet_answers_no_numbers(members: Members, tmp_path: Path) -> None:
    net, [(own, known), *others] = members
    spoilt = replace(own, logits=own.logits * np.float32(np.nan))
    with pytest.raises(PoolError, match=r"member_00 .*differs from the SuperNet by a relative error of nan"):
        write_pool(tmp_path / "pool", net, [(spoilt, known), *others], ORIGIN)
    assert not (tmp_path / "pool").exists()


def test_the_document_and_the_index_say_the_same(members: Members, tmp_path: Path) -> None:
    net, found = members
    origin = replace(ORIGIN, further={"front": {"subnets": 3}})
    document = write_pool(tmp_path / "pool", net, found[::-1], origin)
    assert json.loads((tmp_path / "pool" / "pool.json").read_text())["front"] == {"subnets": 3}
    index = open_pool(tmp_path / "pool").index
    for number, (member, described) in enumerate(zip(index.members, document["members"], strict=True)):
        assert member.name == described["name"] == f"member_{number:02}"
        assert described["subnet"] == found[number][0].subnet.id
        assert described["assignment"] == found[number][0].subnet.assignment
        assert member.accuracy == described["accuracy"]["value"] == 90 + number
        assert member.latency_ms == pytest.approx(described["latency_ms"]["predicted"])
        assert list(member.shape) == list(described["input"]["shape"]) == list(found[number][0].images.shape[1:])


def test_half_precision_takes_half_of_the_room_and_is_refused_at_the_tolerance_of_single(
    members: Members, tmp_path: Path
) -> None:
    net, found = members
    write_pool(tmp_path / "single", net, found, ORIGIN)
    half = replace(ORIGIN, precision="fp16", tolerance=1e-2)
    document = write_pool(tmp_path / "half", net, found, half)
    whole, less = (open_pool(tmp_path / name).index.weights.bytes for name in ("single", "half"))
    assert less < 0.55 * whole
    assert max(member["verification"]["max_relative_error"] for member in document["members"]) > 1e-5
    with pytest.raises(PoolError, match="differs from the SuperNet by a relative error"):
        write_pool(tmp_path / "strict", net, found, replace(half, tolerance=1e-6))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["half", "single"]


def test_wrong_slices_are_caught_before_the_pool_appears(
    members: Members, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, found = members
    write_pool(tmp_path / "pool", net, found[:1], ORIGIN)
    before = {path: path.read_bytes() for path in sorted((tmp_path / "pool").rglob("*.*"))}
    right = plan.candidates_of

    def shifted(net: autotailor.SuperNet, subnet: autotailor.SubNet) -> tuple[plan.Candidate, ...]:
        return tuple(
            replace(each, take=(each.take[0][::-1], *each.take[1:])) if each.value.ndim == 4 else each
            for each in right(net, subnet)
        )

    monkeypatch.setattr("autotailor.pool.writing.candidates_of", shifted)
    with pytest.raises(PoolError, match=r"the piece 'slice .* differs from what the exporter writes"):
        write_pool(tmp_path / "pool", net, found, ORIGIN)
    assert before == {path: path.read_bytes() for path in sorted((tmp_path / "pool").rglob("*.*"))}
    assert [path.name for path in tmp_path.iterdir()] == ["pool"]


def test_a_new_pool_takes_the_place_of_an_old_one(members: Members, tmp_path: Path) -> None:
    net, found = members
    for count in (3, 2):
        write_pool(tmp_path / "pool", net, found[:count], ORIGIN)
        assert len(open_pool(tmp_path / "pool").index.members) == count
    assert sorted(path.name for path in (tmp_path / "pool" / "members").iterdir()) == [
        "member_00.param", "member_00.slices", "member_01.param", "member_01.slices",
    ]  # fmt: skip


def test_the_server_of_an_old_pool_is_found_in_the_folder_of_the_new_one(
    members: Members, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, found = members
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    (tmp_path / "pool").mkdir()
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as client:
        listening.bind("pool/serve.sock")
        listening.listen()
        write_pool(tmp_path / "pool", net, found[:1], ORIGIN)
        client.connect("pool/serve.sock")
    assert len(open_pool(tmp_path / "pool").index.members) == 1


def test_the_pool_says_what_its_networks_do_unless_they_classify(members: Members, tmp_path: Path) -> None:
    net, own = members
    for task, said in (("classification", ""), ("multilabel", "multilabel"), ("outputs", "outputs")):
        write_pool(tmp_path / task, net, own[:1], replace(ORIGIN, task=task))
        assert open_pool(tmp_path / task).index.task == said
