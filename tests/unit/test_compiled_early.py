"""An exhaustive search compiles what it is going to run while the device runs the default."""

SPACE = """
schema: 1
kernel: f
dialect: python
source: f.py
reference: reference.py
sizes: {default: {n: 8}}
dtypes: [int32]
parameters: {A: [1, 2]}
default: {A: 1}
arguments:
  - {name: x, dtype: int32, shape: [n], role: out}
launch:
  - {entry: f, grid: [1], block: [1], arguments: [x]}
"""
KERNEL = """
import pathlib, time
COMPILED = pathlib.Path("compiled-2")

def compiling():
    pathlib.Path(f"compiled-{A}").touch()

def f(grid, block, x):
    for _ in range(20_000):
        if COMPILED.exists():
            x.view("int32")[:] = 3
            return 1.0
        time.sleep(0.01)
"""


def test_other_configurations_are_compiled_before_the_default_has_run(folder):
    (folder.path / "f.py").write_text(KERNEL)
    (folder.path / "reference.py").write_text("def reference(inputs, sizes):\n    return {'x': [3] * 8}\n")
    folder.space.write_text(SPACE)
    done = folder.run(
        "search", folder.space.name, "--device", "fake", "--engine", "exhaustive", "--timeout", "300"
    )
    assert done.returncode == 0, done.stderr
    assert "2 ok" in done.stdout
