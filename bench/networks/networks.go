// Package networks makes networks of the size that people use, with random weights, for
// benchmarks: what takes time in them is as in the trained ones. Each comes in single and half
// precision, with QDQ nodes around operators on 8-bit numbers, and with 8-bit weights and inputs
// that are quantised in each run.
package networks

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Precision is what a network computes in.
type Precision string

// Precisions.
const (
	FP32 Precision = "fp32"
	FP16 Precision = "fp16"
	// static: activations uint8, weights int8 with a scale a channel in convolutions
	QDQ     Precision = "qdq8"
	Dynamic Precision = "dyn8" // DynamicQuantizeLinear before ConvInteger and MatMulInteger
)

var precisions = []Precision{FP32, FP16, QDQ, Dynamic}

var networks = []struct {
	name  string
	build func(*net) []int
}{
	{"resnet50", resnet50},
	{"mobilenetv2", mobileNetV2},
	{"efficientnet_lite0", efficientNetLite0},
	{"yolov5n_320", yolo},
	{"bert_base_128", func(n *net) []int { return bert(n, 128) }},
	{"decoder_100m_prefill64", func(n *net) []int { return decoder(n, 64, 0) }},
	{"decoder_100m_decode128", func(n *net) []int { return decoder(n, 1, 128) }},
}

// Write puts all networks into a folder, which it makes, and returns the files. Those that are
// there stay as they are. All together take 3.5 GB.
func Write(dir string) (files []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, w := range networks {
		for _, p := range precisions {
			path, err := One(dir, w.name, p)
			if err != nil {
				return nil, err
			}
			files = append(files, path)
		}
	}
	return files, nil
}

// One puts a single network into a folder, if it is absent, and returns its file.
func One(dir, name string, p Precision) (string, error) {
	for _, w := range networks {
		if w.name != name {
			continue
		}
		path := filepath.Join(dir, fmt.Sprintf("%s_%s.onnx", name, p))
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		n := newNet(name, p)
		if err := n.write(path, w.build(n)...); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		return path, nil
	}
	return "", fmt.Errorf("there is no network %q", name)
}

// resnet50 is the one of He et al., 2015, with the stride in the 3×3 convolution and batch
// normalisation folded.
func resnet50(n *net) []int {
	x := n.relu(n.conv(n.input("image", tensor.Float32, 1, 3, 224, 224), 3, 64, 7, 2, 1))
	x = n.maxPool(x, 3, 2)
	in := 64
	for i, blocks := range []int{3, 4, 6, 3} {
		mid := 64 << i
		for b := range blocks {
			stride := 1
			if b == 0 && i > 0 {
				stride = 2
			}
			y := n.relu(n.conv(x, in, mid, 1, 1, 1))
			y = n.relu(n.conv(y, mid, mid, 3, stride, 1))
			y = n.conv(y, mid, 4*mid, 1, 1, 1)
			if b == 0 {
				x = n.conv(x, in, 4*mid, 1, stride, 1)
			}
			x, in = n.relu(n.sum(x, y)), 4*mid
		}
	}
	return []int{n.classify(x, in, 1000)}
}

// inverted is a block of MobileNetV2: it widens, filters each channel, and narrows.
func (n *net) inverted(x, in, out, kernel, stride, expand int) int {
	y := x
	if expand != 1 {
		y = n.relu6(n.conv(y, in, in*expand, 1, 1, 1))
	}
	y = n.relu6(n.conv(y, in*expand, in*expand, kernel, stride, in*expand))
	y = n.conv(y, in*expand, out, 1, 1, 1)
	if stride == 1 && in == out {
		y = n.sum(x, y)
	}
	return y
}

// mobileNetV2 is the one of Sandler et al., 2018, of width 1.
func mobileNetV2(n *net) []int {
	x := n.relu6(n.conv(n.input("image", tensor.Float32, 1, 3, 224, 224), 3, 32, 3, 2, 1))
	in := 32
	for _, s := range [][4]int{{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}} {
		for b := range s[2] {
			stride := 1
			if b == 0 {
				stride = s[3]
			}
			x, in = n.inverted(x, in, s[1], 3, stride, s[0]), s[1]
		}
	}
	return []int{n.classify(n.relu6(n.conv(x, in, 1280, 1, 1, 1)), 1280, 1000)}
}

// efficientNetLite0 is the smallest of Google's EfficientNet-Lite, 2020: without squeeze and
// excitation, ReLU6.
func efficientNetLite0(n *net) []int {
	x := n.relu6(n.conv(n.input("image", tensor.Float32, 1, 3, 224, 224), 3, 32, 3, 2, 1))
	in := 32
	for _, s := range [][5]int{{3, 1, 16, 1, 1}, {3, 6, 24, 2, 2}, {5, 6, 40, 2, 2}, {3, 6, 80, 3, 2}, {5, 6, 112, 3, 1}, {5, 6, 192, 4, 2}, {3, 6, 320, 1, 1}} {
		for b := range s[3] {
			stride := 1
			if b == 0 {
				stride = s[4]
			}
			x, in = n.inverted(x, in, s[2], s[0], stride, s[1]), s[2]
		}
	}
	return []int{n.classify(n.relu6(n.conv(x, in, 1280, 1, 1, 1)), 1280, 1000)}
}

// yolo is a detector like the smallest YOLOv5 (a CSP backbone, a pyramid of three sizes) at
// 320×320.
func yolo(n *net) []int {
	conv := func(x, in, out, kernel, stride int) int { return n.silu(n.conv(x, in, out, kernel, stride, 1)) }
	csp := func(x, in, out, blocks int, shortcut bool) int {
		mid := out / 2
		a, b := conv(x, in, mid, 1, 1), conv(x, in, mid, 1, 1)
		for range blocks {
			y := conv(conv(a, mid, mid, 1, 1), mid, mid, 3, 1)
			if shortcut {
				y = n.sum(a, y)
			}
			a = y
		}
		return conv(n.concat(1, a, b), 2*mid, out, 1, 1)
	}
	double := func(x int) int {
		scales := n.constant(tensor.From(tensor.Float32, []int{4}, []float32{1, 1, 2, 2}))
		return n.node("Resize", graph.Attrs{"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, n.code(x), -1, scales)
	}
	x := conv(n.input("image", tensor.Float32, 1, 3, 320, 320), 3, 16, 6, 2)
	x = csp(conv(x, 16, 32, 3, 2), 32, 32, 1, true)
	p3 := csp(conv(x, 32, 64, 3, 2), 64, 64, 2, true)
	p4 := csp(conv(p3, 64, 128, 3, 2), 128, 128, 3, true)
	x = csp(conv(p4, 128, 256, 3, 2), 256, 256, 1, true)
	x = conv(x, 256, 128, 1, 1)
	a := n.maxPool(x, 5, 1)
	b := n.maxPool(a, 5, 1)
	x = conv(n.concat(1, x, a, b, n.maxPool(b, 5, 1)), 512, 256, 1, 1)
	h5 := conv(x, 256, 128, 1, 1)
	x = csp(n.concat(1, double(h5), p4), 256, 128, 1, false)
	h4 := conv(x, 128, 64, 1, 1)
	d3 := csp(n.concat(1, double(h4), p3), 128, 64, 1, false)
	d4 := csp(n.concat(1, conv(d3, 64, 64, 3, 2), h4), 128, 128, 1, false)
	d5 := csp(n.concat(1, conv(d4, 128, 128, 3, 2), h5), 256, 256, 1, false)
	var outs []int
	for i, d := range []int{d3, d4, d5} {
		size := int64(40 >> i)
		y := n.conv(d, 64<<i, 255, 1, 1, 1)
		y = n.transpose(n.reshape(y, 1, 3, 85, size, size), 0, 1, 3, 4, 2)
		outs = append(outs, n.reshape(n.node("Sigmoid", nil, y), 1, 3*size*size, 85))
	}
	return []int{n.node("Concat", graph.Attrs{"axis": 1}, outs...)}
}

// Sizes of a base transformer.
const (
	hidden = 768
	heads  = 12
	wide   = 3072
	layers = 12
)

// attention is that of all heads over keys and values, to which those of the past come, if any.
// mask is added to the scores, -1 for none.
func (n *net) attention(x, length int, past [2]int, mask int) (y int, present [2]int) {
	split := func(v int, perm ...int) int {
		return n.transpose(n.reshape(v, 1, int64(length), heads, hidden/heads), perm...)
	}
	q := split(n.linear(x, hidden, hidden), 0, 2, 1, 3)
	k := split(n.linear(x, hidden, hidden), 0, 2, 1, 3)
	v := split(n.linear(x, hidden, hidden), 0, 2, 1, 3)
	if past[0] >= 0 {
		k = n.node("Concat", graph.Attrs{"axis": 2}, past[0], k)
		v = n.node("Concat", graph.Attrs{"axis": 2}, past[1], v)
	}
	scores := n.node("MatMul", nil, q, n.transpose(k, 0, 1, 3, 2))
	scores = n.node("Div", nil, scores, n.scalar(8)) // the root of 64
	if mask >= 0 {
		scores = n.node("Add", nil, scores, mask)
	}
	y = n.node("MatMul", nil, n.node("Softmax", graph.Attrs{"axis": -1}, scores), v)
	y = n.reshape(n.transpose(y, 0, 2, 1, 3), 1, int64(length), hidden)
	return n.linear(y, hidden, hidden), [2]int{k, v}
}

// bert is the base model of Devlin et al., 2018, with 4096 words: their number takes memory but
// no time.
func bert(n *net, length int) []int {
	words := n.input("tokens", tensor.Int64, 1, length)
	x := n.node("Gather", nil, n.near(0, 0.5, 4096, hidden), words)
	x = n.norm(n.node("Add", nil, x, n.near(0, 0.1, 1, length, hidden)), hidden)
	for range layers {
		y, _ := n.attention(x, length, [2]int{-1, -1}, -1)
		x = n.norm(n.node("Add", nil, x, y), hidden)
		y = n.linear(n.gelu(n.linear(x, hidden, wide)), wide, hidden)
		x = n.norm(n.node("Add", nil, x, y), hidden)
	}
	return []int{x}
}

// decoder is a language model of 110 million parameters, of the shape of the smallest GPT-2 with
// 32,000 words: for so many tokens after so many that were there before, whose keys and values it
// is given.
func decoder(n *net, length, past int) []int {
	const vocabulary = 32_000
	words := n.input("tokens", tensor.Int64, 1, length)
	x := n.node("Gather", nil, n.near(0, 0.5, 4096, hidden), words)
	x = n.node("Add", nil, x, n.near(0, 0.1, 1, length, hidden))
	mask := -1
	if length > 1 {
		mask = n.fill(func(i int) float64 {
			if i%length > i/length {
				return -30_000
			}
			return 0
		}, length, length)
	}
	var kept []int
	for l := range layers {
		before := [2]int{-1, -1}
		if past > 0 {
			before = [2]int{
				n.input(fmt.Sprintf("past_key_%d", l), tensor.Float32, 1, heads, past, hidden/heads),
				n.input(fmt.Sprintf("past_value_%d", l), tensor.Float32, 1, heads, past, hidden/heads),
			}
		}
		y, now := n.attention(n.norm(x, hidden), length, before, mask)
		x = n.node("Add", nil, x, y)
		y = n.linear(n.gelu(n.linear(n.norm(x, hidden), hidden, wide)), wide, hidden)
		x = n.node("Add", nil, x, y)
		kept = append(kept, now[0], now[1])
	}
	x = n.norm(x, hidden)
	if length > 1 { // of the last token alone
		x = n.node("Slice", nil, x, n.ints(int64(length-1)), n.ints(int64(length)), n.ints(1))
	}
	return append([]int{n.linear(x, hidden, vocabulary)}, kept...)
}
