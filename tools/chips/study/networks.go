package study

import (
	"math"
	"strconv"
	"strings"

	c "github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
)

// known builds the work of networks that are described in the literature well
// enough to need no file. The table's counts say whether channels are dead.
func known(name, shape string, row map[string]string) *fit.Work {
	dims := strings.Split(shape, "x")
	size, err := strconv.Atoi(dims[0])
	if err != nil {
		return nil
	}
	ch := 3
	if len(dims) == 3 && dims[2] == "1" {
		ch = 1
	}
	share := 1.0
	live, _ := strconv.ParseFloat(row["live_macs_millions"], 64)
	if all, _ := strconv.ParseFloat(row["macs_millions"], 64); live > 0 && all > 0 {
		share = min(1, live/all)
	}
	var layers []c.Layer
	has := func(s string) bool { return strings.Contains(name, s) }
	switch {
	case has("st_mobilenetv1:MobileNet v1"):
		layers = mobileNet1(size, ch, width(name), share)
	case has("st_mobilenetv2:MobileNet v2"):
		layers = mobileNet2(size, ch, width(name), share)
	case has("FdMobileNet 0.25"):
		layers = fdMobileNet(size, 0.25)
	case has("ResNet v1 8"):
		layers = resNet(1, share)
	case has("ResNet v1 32"):
		layers = resNet(5, share)
	case has("SqueezeNet v1.1"):
		layers = squeezeNet(size)
	case has("Yamnet 256"):
		layers = yamNet()
	default:
		return nil
	}
	n := fit.Total(layers)
	if want, _ := strconv.ParseFloat(row["macs_millions"], 64); want > 0 {
		got := 0.0
		for i := range layers {
			got += layers[i].MACs
		}
		if math.Abs(got/1e6/want-1) > 0.03 {
			return nil // another variant
		}
	}
	return n
}

// width reads the multiplier in a name such as "MobileNet v1 0.25 fft".
func width(name string) float64 {
	for _, w := range []float64{0.25, 0.35, 0.5, 1.0, 1.4} {
		if strings.Contains(name, " "+strconv.FormatFloat(w, 'f', -1, 64)) || strings.Contains(name, " "+strconv.FormatFloat(w, 'f', 1, 64)) {
			return w
		}
	}
	return 1
}

func half(n, stride int) int { return (n + stride - 1) / stride }

// classes of the flower data set, the most common in the tables.
const classes = 5

func head(layers []c.Layer, size, channels int) []c.Layer {
	return append(layers, c.Each(c.PoolElement, "pool", size*size*channels), c.Dense(1, channels, classes), c.Each(c.TableElement, "softmax", classes))
}

func mobileNet1(size, ch int, alpha, share float64) []c.Layer {
	w := func(n int) int { return int(float64(n) * alpha) }
	size = half(size, 2)
	layers := []c.Layer{c.Conv(size, size, 3, 3, ch, w(32), share)}
	in := w(32)
	for _, b := range [][2]int{{64, 1}, {128, 2}, {128, 1}, {256, 2}, {256, 1}, {512, 2}, {512, 1}, {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}} {
		size = half(size, b[1])
		layers = append(layers, c.Depthwise(size, size, 3, 3, in, share), c.Conv(size, size, 1, 1, in, w(b[0]), share))
		in = w(b[0])
	}
	return head(layers, size, in)
}

func fdMobileNet(size int, alpha float64) []c.Layer {
	w := func(n int) int { return int(float64(n) * alpha) }
	size = half(size, 2)
	layers := []c.Layer{c.Conv(size, size, 3, 3, 3, w(32), 1)}
	in := w(32)
	for _, b := range [][2]int{{64, 2}, {128, 2}, {128, 1}, {256, 2}, {256, 1}, {512, 2}, {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 1}} {
		size = half(size, b[1])
		layers = append(layers, c.Depthwise(size, size, 3, 3, in, 1), c.Conv(size, size, 1, 1, in, w(b[0]), 1))
		in = w(b[0])
	}
	return head(layers, size, in)
}

// round8 is the rounding of channels to multiples of eight in MobileNetV2.
func round8(v float64) int {
	n := max(8, int(v+4)/8*8)
	if float64(n) < 0.9*v {
		n += 8
	}
	return n
}

func mobileNet2(size, ch int, alpha, share float64) []c.Layer {
	size = half(size, 2)
	in := round8(32 * alpha)
	layers := []c.Layer{c.Conv(size, size, 3, 3, ch, in, share)}
	for _, b := range [][4]int{{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}} {
		out := round8(float64(b[1]) * alpha)
		for i := range b[2] {
			stride := 1
			if i == 0 {
				stride = b[3]
			}
			mid := in * b[0]
			if b[0] > 1 {
				layers = append(layers, c.Conv(size, size, 1, 1, in, mid, share))
			}
			size = half(size, stride)
			layers = append(layers, c.Depthwise(size, size, 3, 3, mid, share), c.Conv(size, size, 1, 1, mid, out, share))
			if stride == 1 && in == out {
				layers = append(layers, c.Each(c.Element, "add", size*size*out))
			}
			in = out
		}
	}
	last := 1280
	if alpha > 1 {
		last = round8(1280 * alpha)
	}
	layers = append(layers, c.Conv(size, size, 1, 1, in, last, share))
	return head(layers, size, last)
}

// resNet is the residual network for 32 x 32 images with n blocks per stage.
func resNet(n int, share float64) []c.Layer {
	size, in := 32, 16
	layers := []c.Layer{c.Conv(size, size, 3, 3, 3, in, share)}
	for stage, out := range []int{16, 32, 64} {
		for b := range n {
			if stage > 0 && b == 0 {
				size /= 2
				layers = append(layers, c.Conv(size, size, 1, 1, in, out, share))
			}
			layers = append(layers, c.Conv(size, size, 3, 3, in, out, share), c.Conv(size, size, 3, 3, out, out, share), c.Each(c.Element, "add", size*size*out))
			in = out
		}
	}
	return head(layers, size, in)
}

func squeezeNet(size int) []c.Layer {
	size = (size-3)/2 + 1
	layers := []c.Layer{c.Conv(size, size, 3, 3, 3, 64, 1)}
	pool := func(ch int) {
		size = (size-3)/2 + 1
		layers = append(layers, c.Each(c.PoolElement, "pool", size*size*ch*9))
	}
	in := 64
	fire := func(s, e int) {
		layers = append(layers, c.Conv(size, size, 1, 1, in, s, 1), c.Conv(size, size, 1, 1, s, e, 1), c.Conv(size, size, 3, 3, s, e, 1),
			c.Each(c.MoveElement, "concat", size*size*2*e))
		in = 2 * e
	}
	pool(in)
	fire(16, 64)
	fire(16, 64)
	pool(in)
	fire(32, 128)
	fire(32, 128)
	pool(in)
	fire(48, 192)
	fire(48, 192)
	fire(64, 256)
	fire(64, 256)
	layers = append(layers, c.Conv(size, size, 1, 1, in, classes, 1), c.Each(c.PoolElement, "pool", size*size*classes), c.Each(c.TableElement, "softmax", classes))
	return layers
}

// yamNet is the first part of the audio network, up to 256 channels.
func yamNet() []c.Layer {
	h, w := 48, 32
	layers := []c.Layer{c.Conv(h, w, 3, 3, 1, 32, 1)}
	in := 32
	for _, b := range [][2]int{{64, 1}, {128, 2}, {128, 1}, {256, 2}, {256, 1}} {
		h, w = half(h, b[1]), half(w, b[1])
		layers = append(layers, c.Depthwise(h, w, 3, 3, in, 1), c.Conv(h, w, 1, 1, in, b[0], 1))
		in = b[0]
	}
	return append(layers, c.Each(c.PoolElement, "pool", h*w*in), c.Dense(1, in, classes), c.Each(c.TableElement, "softmax", classes))
}
