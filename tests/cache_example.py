"""A device, a kernel's record and its entries, as small as they can be and still say everything."""

from dataclasses import replace

from autotune.core.records import (
    ArgumentSpec,
    Config,
    DeviceInfo,
    Entry,
    KernelRecord,
    LaunchSpec,
    Parameter,
    Provenance,
)

DEVICE = DeviceInfo(
    backend="fake",
    name="Example(R) GPU 100",
    slug="example-gpu-100",
    kind="gpu",
    vendor="Example",
    architecture="ex_10",
    compute_units=4,
    warp_size=32,
    max_threads_per_block=256,
    shared_bytes_per_block=49_152,
    registers_per_block=None,
    memory_bytes=2**33,
    memory_bandwidth_bytes_per_s=1.5e12,
    cache_bytes=2**22,
    has_shuffle=True,
    driver="driver 7",
    runtime="runtime 3",
)
OTHER = replace(DEVICE, name="Other GPU", slug="other-gpu", architecture="ot_2", max_threads_per_block=64)
PROVENANCE = Provenance(
    tuned_at="2025-03-01T12:00:00+00:00",
    autotune="0.1.0",
    host="Linux x86_64, Python 3.11",
    driver="driver 7",
    runtime="runtime 3",
    source_sha256="5" * 64,
    space_sha256="a" * 64,
    engine="random",
    seed=3,
    trials=40,
    valid_configurations=48,
    protocol="median of 7",
    compiler="compiler 5.1",
)
DEFAULT = Config({"ALGORITHM": "tree", "BLOCK": 64, "VECTOR": 1, "UNROLL": False})


def entry(n: int, dtype: str = "int32", provenance: Provenance = PROVENANCE, **config) -> Entry:
    """A result for one size; its time tells it from the others."""
    best = Config({**DEFAULT, **config})
    return Entry({"n": n}, dtype, best, n / 1e6, (n / 2e6, n / 5e5), n / 1e5, (DEFAULT,), provenance)


def record(*entries: Entry, kernel: str = "reduce", default: Config = DEFAULT) -> KernelRecord:
    """A kernel with a derived name that needs another, and a plan whose second launch is optional."""
    return KernelRecord(
        kernel=kernel,
        dtypes=("int32", "float32"),
        parameters=(
            Parameter("ALGORITHM", ("tree", "shuffle")),
            Parameter("BLOCK", (32, 64, 128, 256)),
            Parameter("VECTOR", (1, 2, 4)),
            Parameter("UNROLL", (False, True)),
        ),
        constraints=("BLOCK <= device.max_threads_per_block", "n % VECTOR == 0"),
        derived={"TILE": "BLOCK * VECTOR", "BLOCKS": "ceil_div(n, TILE)"},
        compiler_options={"cuda": {"--maxrregcount": "BLOCK // 2", "--use_fast_math": "UNROLL"}},
        arguments=(
            ArgumentSpec("x", "DTYPE", "in", ("n",)),
            ArgumentSpec("part", "DTYPE", "scratch", ("BLOCKS",)),
            ArgumentSpec("out", "DTYPE", "out", ("1",)),
            ArgumentSpec("n", "int32", "scalar", value="n"),
        ),
        launch=(
            LaunchSpec(
                "main",
                ("min(BLOCKS, 8 * device.compute_units)",),
                ("BLOCK",),
                ("x", "part", "n"),
                "4 * BLOCK",
            ),
            LaunchSpec("last", ("1",), ("32",), ("part", "out"), when="BLOCKS > 1"),
        ),
        default=default,
        entries=entries,
    )
