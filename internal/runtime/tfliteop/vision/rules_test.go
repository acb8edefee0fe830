package vision

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// pooling are the packed options: padding, strides and size, width before height.
func pooling(same bool, strideW, strideH, w, h int32) graph.Attrs {
	padding := int32(2)
	if same {
		padding = 1
	}
	var b []byte
	for _, v := range []int32{padding, strideW, strideH, w, h} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return graph.Attrs{"custom_options": b}
}

// TestPoolAndBack holds pooling with places against its definition, and puts what was
// taken back where it was.
func TestPoolAndBack(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		n, h, w, ch := 1+r.IntN(2), 2+r.IntN(5), 2+r.IntN(5), 1+r.IntN(3)
		sh, sw, kh, kw, same := 1+r.IntN(2), 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(3), i%2 == 0
		x := make([]float64, n*h*w*ch)
		for k, p := range r.Perm(len(x)) {
			x[k] = float64(p + 1) // no two alike, none zero
		}
		size := func(in, k, s int) (out, pad int) {
			if !same {
				for at := 0; at+k <= in; at += s {
					out++
				}
				return out, 0
			}
			for at := 0; at < in; at += s {
				out++
			}
			return out, max(0, (out-1)*s+k-in) / 2
		}
		oh, ph := size(h, kh, sh)
		ow, pw := size(w, kw, sw)
		var most, places []float64
		for p := range n * oh * ow * ch {
			c, ox, oy, b := p%ch, p/ch%ow, p/ch/ow%oh, p/ch/ow/oh
			best, at := 0.0, 0
			for k := range kh * kw {
				y, z := oy*sh-ph+k/kw, ox*sw-pw+k%kw
				if y < 0 || z < 0 || y >= h || z >= w {
					continue
				}
				if v := x[((b*h+y)*w+z)*ch+c]; v > best {
					best, at = v, k
				}
			}
			most, places = append(most, best), append(places, float64(at))
		}
		attrs := pooling(same, int32(sw), int32(sh), int32(kw), int32(kh))
		got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "MaxPoolingWithArgmax2D", Attrs: attrs, Outputs: 2}, optest.Of(tensor.Float32, nil, []int{n, h, w, ch}, x...))
		if err != nil {
			t.Fatal(err)
		}
		optest.Near(t, "largest", got[0], most, 0, 0)
		optest.Near(t, "places", got[1], places, 0, 0)
		if oh*ow == 0 {
			continue
		}
		back, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "MaxUnpooling2D", Attrs: attrs}, got[0], got[1])
		if err != nil {
			t.Fatal(err)
		}
		bh, bw := oh*sh, ow*sw
		if !same {
			bh, bw = (oh-1)*sh+kh, (ow-1)*sw+kw
		}
		if s := back[0].Shape; s[0] != n || s[1] != bh || s[2] != bw || s[3] != ch {
			t.Fatalf("%v of %dx%d windows every %d and %d becomes %v", []int{n, h, w, ch}, kh, kw, sh, sw, s)
		}
		if same && (bh != h || bw != w) {
			continue // another size has another padding
		}
		// Each element of the image is there or zero, and each largest one is there.
		seen := map[float64]bool{}
		for p, v := range tensor.Of[float32](back[0]) {
			c, z, y, b := p%ch, p/ch%bw, p/ch/bw%bh, p/ch/bw/bh
			if v == 0 {
				continue
			}
			if seen[float64(v)] = true; x[((b*h+y)*w+z)*ch+c] != float64(v) {
				t.Fatalf("element %d is %v", p, v)
			}
		}
		for _, v := range most {
			if !seen[v] {
				t.Fatalf("%v is not back", v)
			}
		}
	}
}

func refuses(t *testing.T, what, domain, op string, attrs graph.Attrs, outputs int, text string, in ...*tensor.Tensor) {
	t.Helper()
	if _, err := optest.Run(Defs(), optest.Node{Domain: domain, Op: op, Attrs: attrs, Outputs: outputs}, in...); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %q", what, err, text)
	}
}

func TestPoolRefuses(t *testing.T) {
	t.Parallel()
	x := tensor.New(tensor.Float32, 1, 2, 2, 1)
	const pool, unpool = "MaxPoolingWithArgmax2D", "MaxUnpooling2D"
	for _, c := range []struct{ sw, sh, w, h int32 }{{0, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, 0}, {-1, 1, 1, 1}, {1, 1, 1<<20 + 1, 1}} {
		refuses(t, "window", graph.TFLiteCustom, pool, pooling(true, c.sw, c.sh, c.w, c.h), 2, "with strides", x)
	}
	good := pooling(true, 1, 1, 1, 1)
	refuses(t, "options", graph.TFLiteCustom, pool, graph.Attrs{"custom_options": make([]byte, 19)}, 2, "options of 19 bytes", x)
	refuses(t, "no options", graph.TFLiteCustom, pool, nil, 2, "options of 0 bytes", x)
	refuses(t, "no image", graph.TFLiteCustom, pool, good, 2, "input 0 is missing")
	refuses(t, "rank", graph.TFLiteCustom, pool, good, 2, "images float32 2x2", tensor.New(tensor.Float32, 2, 2))
	refuses(t, "type", graph.TFLiteCustom, pool, good, 2, "images int8", tensor.New(tensor.Int8, 1, 2, 2, 1))
	refuses(t, "one output", graph.TFLiteCustom, pool, good, 1, "two outputs are expected", x)
	refuses(t, "no places", graph.TFLiteCustom, unpool, good, 1, "input 1 is missing", x)
	refuses(t, "other places", graph.TFLiteCustom, unpool, good, 1, "values 1x2x2x1 with places 1x2x1x1", x, tensor.New(tensor.Float32, 1, 2, 1, 1))
	for _, v := range []float64{-1, 1} {
		refuses(t, "outside", graph.TFLiteCustom, unpool, good, 1, "is outside the window", x, optest.Of(tensor.Float32, nil, []int{1, 2, 2, 1}, 0, 0, 0, v))
	}
}

// TestChoice: boxes are taken by score, the first of equal ones first; one that overlaps
// a taken one as much as the limit is dropped, one with as little score as the least is
// not a candidate.
func TestChoice(t *testing.T) {
	t.Parallel()
	// Halves of each other's neighbours: 0 and 1 overlap by a third, 2 is alone.
	boxes := optest.Of(tensor.Float32, nil, []int{3, 4}, 0, 0, 2, 2, 0, 1, 2, 3, 0, 9, 2, 11)
	// corners the other way
	turned := optest.Of(tensor.Float32, nil, []int{3, 4}, 2, 2, 0, 0, 2, 3, 0, 1, 2, 11, 0, 9)
	one := func(v float64) *tensor.Tensor { return optest.Of(tensor.Float32, nil, []int{}, v) }
	most := func(n float64) *tensor.Tensor { return optest.Of(tensor.Int32, nil, []int{}, n) }
	scores := func(v ...float64) *tensor.Tensor { return optest.Row(tensor.Float32, nil, v...) }
	third := float64(float32(2) / float32(6))
	for _, c := range []struct {
		name         string
		scores       []float64
		most         float64
		limit, least float64
		want         []float64
		n            float64
	}{
		{"all", []float64{0.9, 0.8, 0.7}, 3, 0.5, 0, []float64{0, 1, 2}, 3},
		{"by score", []float64{0.7, 0.8, 0.9}, 3, 0.5, 0, []float64{2, 1, 0}, 3},
		{"equal scores", []float64{0.5, 0.5, 0.5}, 3, 0.5, 0, []float64{0, 1, 2}, 3},
		{"overlap", []float64{0.9, 0.8, 0.7}, 3, 0.25, 0, []float64{0, 2, 0}, 2},
		{"overlap of the limit", []float64{0.9, 0.8, 0.7}, 3, third, 0, []float64{0, 2, 0}, 2},
		{"at most two", []float64{0.9, 0.8, 0.7}, 2, 0.5, 0, []float64{0, 1}, 2},
		{"least score", []float64{0.9, 0.8, 0.75}, 3, 0.5, 0.75, []float64{0, 1, 0}, 2},
		{"none", []float64{0.9, 0.8, 0.7}, 0, 0.5, 0, nil, 0},
		{"nobody is good enough", []float64{0.9, 0.8, 0.7}, 2, 0.5, 1, []float64{0, 0}, 0},
	} {
		for _, b := range []*tensor.Tensor{boxes, turned} {
			got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: "NON_MAX_SUPPRESSION_V4", Outputs: 2}, b, scores(c.scores...), most(c.most), one(c.limit), one(c.least))
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			optest.Near(t, c.name, got[0], c.want, 0, 0)
			optest.Near(t, c.name+", number", got[1], []float64{c.n}, 0, 0)
			soft, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: "NON_MAX_SUPPRESSION_V5", Outputs: 3}, b, scores(c.scores...), most(c.most), one(c.limit), one(c.least), one(0))
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			values := make([]float64, len(c.want))
			for i := range int(c.n) {
				values[i] = float64(float32(c.scores[int(c.want[i])]))
			}
			optest.Near(t, c.name+", without decay", soft[0], c.want, 0, 0)
			optest.Near(t, c.name+", scores", soft[1], values, 0, 0)
			optest.Near(t, c.name+", number", soft[2], []float64{c.n}, 0, 0)
		}
	}
	// With a decay the overlapping box falls behind: 0.8·e^(-1/9/2/σ).
	soft, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: "NON_MAX_SUPPRESSION_V5", Outputs: 3}, boxes, scores(0.9, 0.8, 0.7), most(3), one(1), one(0), one(0.25))
	if err != nil {
		t.Fatal(err)
	}
	optest.Near(t, "decay", soft[0], []float64{0, 2, 1}, 0, 0)
	optest.Near(t, "decayed scores", soft[1], []float64{0.9, 0.7, 0.8 * 0.8007374}, 1e-6, 0)
	const v4, v5 = "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5"
	s := scores(1, 1, 1)
	refuses(t, "five inputs", graph.TFLite, v5, nil, 3, "input 5 is missing", boxes, s, most(1), one(1), one(1))
	refuses(t, "four inputs", graph.TFLite, v4, nil, 2, "input 4 is missing", boxes, s, most(1), one(1))
	refuses(t, "scores", graph.TFLite, v4, nil, 2, "with scores float32 2", boxes, scores(1, 1), most(1), one(1), one(1))
	refuses(t, "boxes", graph.TFLite, v4, nil, 2, "boxes float32 3x3", tensor.New(tensor.Float32, 3, 3), s, most(1), one(1), one(1))
	refuses(t, "type of boxes", graph.TFLite, v4, nil, 2, "boxes int32", tensor.New(tensor.Int32, 3, 4), s, most(1), one(1), one(1))
	refuses(t, "threshold", graph.TFLite, v4, nil, 2, "threshold float32 2", boxes, s, most(1), scores(1, 1), one(1))
	refuses(t, "type of a threshold", graph.TFLite, v4, nil, 2, "threshold int32", boxes, s, most(1), one(1), most(1))
	refuses(t, "negative", graph.TFLite, v4, nil, 2, "largest number of boxes [-1]", boxes, s, most(-1), one(1), one(1))
	refuses(t, "two numbers", graph.TFLite, v4, nil, 2, "largest number of boxes [1 2]", boxes, s, optest.Row(tensor.Int32, nil, 1, 2), one(1), one(1))
}

func TestDetectionRefuses(t *testing.T) {
	t.Parallel()
	good := func(change map[string]any) graph.Attrs {
		m := map[string]any{"max_detections": int64(3), "max_classes_per_detection": int64(1), "num_classes": int64(2)}
		for k, v := range change {
			m[k] = v
		}
		return options(t, m)
	}
	of := func(shape ...int) *tensor.Tensor { return tensor.New(tensor.Float32, shape...) }
	const name = "TFLite_Detection_PostProcess"
	b, s, a := of(1, 3, 4), of(1, 3, 3), of(3, 4)
	for k, v := range map[string]int64{"max_detections": 0, "max_classes_per_detection": 0, "num_classes": 0, "detections_per_class": 0} {
		refuses(t, k, graph.TFLiteCustom, name, good(map[string]any{k: v}), 4, "detections of", b, s, a)
	}
	refuses(t, "too many", graph.TFLiteCustom, name, good(map[string]any{"max_detections": int64(1<<20 + 1)}), 4, "1048577 detections", b, s, a)
	for _, k := range []string{"y_scale", "x_scale", "h_scale", "w_scale"} {
		refuses(t, k, graph.TFLiteCustom, name, good(map[string]any{k: 0.0}), 4, "a scale is zero", b, s, a)
	}
	for what, in := range map[string][3]*tensor.Tensor{
		"two images": {of(2, 3, 4), s, a}, "scores of two": {b, of(2, 3, 3), a}, "boxes": {of(1, 2, 4), s, a}, "anchors": {b, s, of(2, 4)},
		"short boxes": {of(1, 3, 3), s, a}, "short anchors": {b, s, of(3, 3)}, "classes": {b, of(1, 3, 1), a}, "rank": {of(3, 4), s, a},
	} {
		refuses(t, what, graph.TFLiteCustom, name, good(nil), 4, "boxes ", in[0], in[1], in[2])
	}
	refuses(t, "outputs", graph.TFLiteCustom, name, good(nil), 3, "", b, s, a)
}

// TestDecoding: centre and size relative to the anchor become corners; a box overlaps
// more than the limit to be dropped, and a score of the least is good enough.
func TestDecoding(t *testing.T) {
	t.Parallel()
	attrs := func(regular bool, limit, least float64, per int64) graph.Attrs {
		return options(t, map[string]any{
			"max_detections": int64(2), "max_classes_per_detection": per, "num_classes": int64(2), "nms_iou_threshold": limit, "nms_score_threshold": least, "use_regular_nms": regular,
			"y_scale": 2.0, "x_scale": 4.0, "h_scale": 1.0, "w_scale": 1.0,
		})
	}
	// The first box is moved by half its height down and a quarter of its width to the right.
	code := optest.Of(tensor.Float32, nil, []int{1, 2, 4}, 1, 1, 0, 0, 0, 0, 0, 0)
	anchors := optest.Of(tensor.Float32, nil, []int{2, 4}, 0, 0, 2, 4, 1, 3, 2, 4)
	// 9: the background
	scores := optest.Of(tensor.Float32, nil, []int{1, 2, 3}, 9, 0.5, 0.75, 9, 0.5, 0.25)
	for _, c := range []struct {
		name           string
		attrs          graph.Attrs
		boxes          []float64
		classes, score []float64
		n              float64
	}{
		// They overlap by a half of the width: 1/3 of what they cover.
		{"both", attrs(false, 0.5, 0, 1), []float64{0, -1, 2, 3, 0, 1, 2, 5}, []float64{1, 0}, []float64{0.75, 0.5}, 2},
		{"one", attrs(false, 0.25, 0, 1), []float64{0, -1, 2, 3, 0, 0, 0, 0}, []float64{1, 0}, []float64{0.75, 0}, 1},
		{"least score", attrs(false, 0.5, 0.5, 1), []float64{0, -1, 2, 3, 0, 1, 2, 5}, []float64{1, 0}, []float64{0.75, 0.5}, 2},
		{"above one of them", attrs(false, 0.5, 0.625, 1), []float64{0, -1, 2, 3, 0, 0, 0, 0}, []float64{1, 0}, []float64{0.75, 0}, 1},
		{"by class", attrs(true, 0.25, 0, 1), []float64{0, -1, 2, 3, 0, -1, 2, 3}, []float64{1, 0}, []float64{0.75, 0.5}, 2},
	} {
		got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "TFLite_Detection_PostProcess", Attrs: c.attrs, Outputs: 4}, code, scores, anchors)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for i, want := range [][]float64{c.boxes, c.classes, c.score, {c.n}} {
			optest.Near(t, c.name, got[i], want, 1e-6, 0)
		}
	}
}
