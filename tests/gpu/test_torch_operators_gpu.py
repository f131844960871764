"""Tuned kernels as operators of PyTorch."""

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

from torch._subclasses import FakeTensorMode  # noqa: E402 - needs torch

from autotune.errors import InputError  # noqa: E402
from autotune.torch import custom_op  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::autotune.StaleWarning")]


@pytest.fixture(scope="module")
def reduce():
    return custom_op("reduce")


def test_it_passes_torch_s_own_checks(reduce):
    x = torch.ones(1000, device="cuda")
    torch.library.opcheck(reduce, (x,), test_utils=("test_schema", "test_faketensor"))
    torch.library.opcheck(custom_op("matmul"), (x[:600].view(20, 30), x[:300].view(30, 10)))


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
def test_it_compiles_as_one_graph_for_several_sizes(reduce, mode):
    compiled = torch.compile(lambda x: reduce(2 * x) + 1, fullgraph=True, mode=mode)
    for n in (1000, 1000, 1000, 4096, 100_003):
        assert float(compiled(torch.ones(n, device="cuda"))[0]) == 2 * n + 1


def test_fake_outputs_have_the_types_of_real_ones_and_name_a_wrong_rank(reduce):
    typed = custom_op("reduce", name="autotune::reduce_int32", dtype="int32")
    x = torch.ones(1000, device="cuda", dtype=torch.int32)
    with FakeTensorMode():
        fake = torch.empty(1000, device="cuda", dtype=torch.int32)
        assert typed(fake).dtype == reduce(fake).dtype == torch.int32
        with pytest.raises(InputError, match=r"x has shape \(10, 100\), and the space declares \[n\]"):
            reduce(fake.view(10, 100))
    assert typed(x).dtype == torch.int32 and int(typed(x)) == 1000


def test_it_works_in_graphs_and_on_other_streams(reduce):
    x = torch.ones(10_000, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        x.fill_(3)
        total = reduce(x)
    stream.synchronize()
    assert float(total) == 30_000
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total = reduce(x)
    x.fill_(2)
    graph.replay()
    assert float(total) == 20_000


def test_it_works_on_every_gpu(reduce):
    for number in range(torch.cuda.device_count()):
        x = torch.ones(1000, device=f"cuda:{number}")
        assert reduce(x).device == x.device and float(reduce(x)) == 1000


def test_views_are_made_contiguous(reduce):
    x = torch.ones(2000, device="cuda")
    assert float(reduce(x[::2])) == 1000
