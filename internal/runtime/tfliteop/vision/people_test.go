package vision

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestPeople decodes two people, the surer one first, and gives every cell to the one
// that its long offsets point to.
func TestPeople(t *testing.T) {
	t.Parallel()
	const h, w, stride = 3, 7, 16
	maps := func(depth int) *tensor.Tensor { return tensor.New(tensor.Float32, 1, h, w, depth) }
	heat, short, mid, broad := maps(keypoints), maps(2*keypoints), maps(4*len(bones)), maps(2*keypoints)
	people := []struct {
		col   int
		logit float32
	}{{1, 4}, {5, 5}}
	for cell := range h * w {
		col, nearest := cell%w, people[0].col
		if col > 3 {
			nearest = people[1].col
		}
		for k := range keypoints {
			v := float32(-5)
			for _, p := range people {
				if col == p.col && cell/w == 1 {
					v = p.logit
				}
			}
			tensor.Of[float32](heat)[cell*keypoints+k] = v
			o := tensor.Of[float32](broad)[cell*2*keypoints:]
			o[k], o[keypoints+k] = float32(1-cell/w)*stride, float32(nearest-col)*stride
		}
	}
	sure := func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
	opts := func(most int64, least, radius float64, stride int64) graph.Attrs {
		return options(t, map[string]any{"max_detections": most, "score_threshold": least, "stride": stride, "nms_radius": radius})
	}
	for _, c := range []struct {
		name   string
		most   int64
		least  float64
		radius float64
		scores []float64
		n      float64
	}{
		{"both", 3, 0.5, 20, []float64{sure(5), sure(4), 0}, 2},
		{"one is wanted", 1, 0.5, 20, []float64{sure(5)}, 1},
		{"one is sure enough", 3, 0.99, 20, []float64{sure(5), 0, 0}, 1},
		{"as near as four cells", 3, 0.5, 4 * stride, []float64{sure(5), 0, 0}, 1},
		{"not as near", 3, 0.5, 4*stride - 1, []float64{sure(5), sure(4), 0}, 2},
	} {
		got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "PosenetDecoderOp", Attrs: opts(c.most, c.least, c.radius, stride), Outputs: 5}, heat, short, mid, broad)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		optest.Near(t, c.name, got[2], c.scores, 1e-6, 0)
		optest.Near(t, c.name+", number", got[3], []float64{c.n}, 0, 0)
		for i := range int(c.n) {
			for k := range keypoints {
				at := (i*keypoints + k) * 2
				if y, x := tensor.At(got[0], at), tensor.At(got[0], at+1); y != stride || x != float64(people[1-i].col*stride) {
					t.Errorf("%s: keypoint %d of person %d at %v, %v", c.name, k, i, y, x)
				}
			}
		}
		for cell := range h * w {
			whose := 0
			if cell%w <= 3 && c.n == 2 {
				whose = 1
			}
			for i := range int(c.most) {
				want := 0.0
				if i == whose {
					want = 1
				}
				if v := tensor.At(got[4], i*h*w+cell); v != want {
					t.Errorf("%s: cell %d of person %d is %v, want %v", c.name, cell, i, v, want)
				}
			}
		}
	}
	const name = "PosenetDecoderOp"
	refuses(t, "nobody", graph.TFLiteCustom, name, opts(0, 0.5, 20, 16), 4, "0 poses with a stride of 16", heat, short, mid)
	refuses(t, "too many", graph.TFLiteCustom, name, opts(1<<16+1, 0.5, 20, 16), 4, "65537 poses", heat, short, mid)
	refuses(t, "stride", graph.TFLiteCustom, name, opts(1, 0.5, 20, 0), 4, "with a stride of 0", heat, short, mid)
	refuses(t, "two maps", graph.TFLiteCustom, name, opts(1, 0.5, 20, 16), 4, "input 2 is missing", heat, short)
	refuses(t, "masks of nothing", graph.TFLiteCustom, name, opts(1, 0.5, 20, 16), 5, "5 outputs from 3 maps", heat, short, mid)
	for i, text := range []string{"map 0", "map 1", "map 2", "map 3"} {
		for _, shape := range [][]int{{1, h, w, 5}, {2, h, w, 5}, {h, w, 5}} {
			in := []*tensor.Tensor{heat, short, mid, broad}
			in[i] = tensor.New(tensor.Float32, shape...)
			if i == 0 && len(shape) < 4 {
				continue // its size is that of the others
			}
			refuses(t, "map", graph.TFLiteCustom, name, opts(1, 0.5, 20, 16), 5, text, in...)
		}
	}
	refuses(t, "height", graph.TFLiteCustom, name, opts(1, 0.5, 20, 16), 4, "map 1", heat, tensor.New(tensor.Float32, 1, h+1, w, 2*keypoints), mid)
	refuses(t, "width", graph.TFLiteCustom, name, opts(1, 0.5, 20, 16), 4, "map 2", heat, short, tensor.New(tensor.Float32, 1, h, w+1, 4*len(bones)))
}

// TestWarpEdges reads between pixels and beyond the image, which is zero there.
func TestWarpEdges(t *testing.T) {
	t.Parallel()
	image := optest.Of(tensor.Float32, nil, []int{1, 2, 3, 2}, 1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60)
	shift := func(x, y float64) *tensor.Tensor {
		return optest.Of(tensor.Float32, nil, []int{1, 4, 4}, 1, 0, 0, x, 0, 1, 0, y, 0, 0, 1, 0, 0, 0, 0, 1)
	}
	size := func(h, w int64) graph.Attrs { return options(t, map[string]any{"output_height": h, "output_width": w}) }
	for _, version := range []int{1, 2} {
		for _, c := range []struct {
			x, y float64
			want []float64
		}{
			{0, 0, []float64{1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60}},
			{1, 0, []float64{2, 20, 3, 30, 0, 0, 5, 50, 6, 60, 0, 0}},
			{0, 1, []float64{4, 40, 5, 50, 6, 60, 0, 0, 0, 0, 0, 0}},
			{-0.5, 0, []float64{0.5, 5, 1.5, 15, 2.5, 25, 2, 20, 4.5, 45, 5.5, 55}},
			{0, -0.25, []float64{0.75, 7.5, 1.5, 15, 2.25, 22.5, 3.25, 32.5, 4.25, 42.5, 5.25, 52.5}},
			{0.5, 0.5, []float64{3, 30, 4, 40, 2.25, 22.5, 2.25, 22.5, 2.75, 27.5, 1.5, 15}},
			{3, 0, make([]float64, 12)},
			{0, -2, make([]float64, 12)},
			{math.NaN(), 0, make([]float64, 12)},
		} {
			n := optest.Node{Domain: graph.TFLiteCustom, Op: "TransformTensorBilinear", Version: version, Attrs: size(2, 3)}
			got, err := optest.Run(Defs(), n, image, shift(c.x, c.y))
			if err != nil {
				t.Fatal(err)
			}
			optest.Near(t, "moved", got[0], c.want, 1e-6, 0)
		}
	}
	const name = "TransformTensorBilinear"
	refuses(t, "no height", graph.TFLiteCustom, name, size(0, 3), 1, "result of 0 x 3", image, shift(0, 0))
	refuses(t, "no width", graph.TFLiteCustom, name, size(3, 0), 1, "result of 3 x 0", image, shift(0, 0))
	refuses(t, "matrix", graph.TFLiteCustom, name, size(1, 1), 1, "with matrix float32 3x3", image, tensor.New(tensor.Float32, 3, 3))
	refuses(t, "rank", graph.TFLiteCustom, name, size(1, 1), 1, "float32 2x3", tensor.New(tensor.Float32, 2, 3), shift(0, 0))
	refuses(t, "two images", graph.TFLiteCustom, name, size(1, 1), 1, "float32 2x2x3x2", tensor.New(tensor.Float32, 2, 2, 3, 2), shift(0, 0))
	refuses(t, "no matrix", graph.TFLiteCustom, name, size(1, 1), 1, "input 1 is missing", image)

	// Landmarks: x and y are moved, what follows stays.
	turn := optest.Of(tensor.Float32, nil, []int{1, 4, 4}, 0, -1, 0, 5, 2, 0, 0, 7, 0, 0, 1, 0, 0, 0, 0, 1)
	optest.Exactly(t, "landmarks", Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "TransformLandmarks"}, []int{1, 2, 3}, []float64{3, 9, 9, 1, 13, 8},
		optest.Of(tensor.Float32, nil, []int{1, 2, 3}, 1, 2, 9, 3, 4, 8), turn)
	refuses(t, "one coordinate", graph.TFLiteCustom, "TransformLandmarks", nil, 1, "landmarks of 1 coordinates", tensor.New(tensor.Float32, 1, 2, 1), turn)

	points := optest.Of(tensor.Float32, nil, []int{1, 2, 3}, 0, 0, 0, 10, 0, 0)
	region := func(change map[string]any) graph.Attrs {
		m := map[string]any{"left_rotation_idx": int64(0), "right_rotation_idx": int64(1), "output_width": int64(2), "output_height": int64(2), "subset_idxs": []any{int64(0), int64(1)}}
		for k, v := range change {
			m[k] = v
		}
		return options(t, m)
	}
	const find = "Landmarks2TransformMatrix"
	for k, v := range map[string]int64{"left_rotation_idx": 2, "right_rotation_idx": -1} {
		refuses(t, k, graph.TFLiteCustom, find, region(map[string]any{k: v}), 1, "of 2", points)
	}
	refuses(t, "a point", graph.TFLiteCustom, find, region(map[string]any{"subset_idxs": []any{int64(0), int64(2)}}), 1, "landmark 2 of 2", points)
	refuses(t, "width", graph.TFLiteCustom, find, region(map[string]any{"output_width": int64(0)}), 1, "crop of 0 x 2", points)
	refuses(t, "height", graph.TFLiteCustom, find, region(map[string]any{"output_height": int64(0)}), 1, "crop of 2 x 0", points)
	refuses(t, "no points", graph.TFLiteCustom, find, region(map[string]any{"subset_idxs": []any{}}), 1, "", points)
	refuses(t, "rank", graph.TFLiteCustom, find, region(nil), 1, "landmarks float32 2x3", tensor.New(tensor.Float32, 2, 3))
	refuses(t, "flat", graph.TFLiteCustom, find, region(nil), 1, "landmarks float32 1x2x2", tensor.New(tensor.Float32, 1, 2, 2))
}
