import numpy as np


def reference(inputs, sizes):
    total = np.dot(inputs["x"].ravel().astype(float), inputs["y"].ravel().astype(float))
    return {"sum": np.array([total]), "ramp": inputs["ramp"] + np.float32(0.5)}
