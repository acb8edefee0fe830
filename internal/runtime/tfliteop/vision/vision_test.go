package vision

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/flexbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func f32(shape []int, v ...float32) *tensor.Tensor { return tensor.From(tensor.Float32, shape, v) }

func options(t *testing.T, m map[string]any) graph.Attrs {
	t.Helper()
	b, err := flexbuffer.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return graph.Attrs{"custom_options": b}
}

// six boxes in three groups of two that overlap by more than half.
var six = f32([]int{6, 4}, 0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, -0.1, 1, 0.9, 0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 100, 1, 101)

func TestSuppression(t *testing.T) {
	t.Parallel()
	scores := f32([]int{6}, 0.9, 0.75, 0.6, 0.95, 0.5, 0.3)
	most := tensor.From(tensor.Int32, nil, []int32{4})
	got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: "NON_MAX_SUPPRESSION_V4", Outputs: 2}, six, scores, most, f32(nil, 0.5), f32(nil, 0.4))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int32{3, 0, 0, 0}, tensor.Of[int32](got[0])); diff != "" || tensor.Of[int32](got[1])[0] != 2 {
		t.Errorf("%d boxes: %s", tensor.Of[int32](got[1])[0], diff)
	}
	soft, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLite, Op: "NON_MAX_SUPPRESSION_V5", Outputs: 3}, six, scores, tensor.From(tensor.Int32, nil, []int32{6}), f32(nil, 1), f32(nil, 0), f32(nil, 0.5))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int32{3, 0, 1, 5, 4, 2}, tensor.Of[int32](soft[0])); diff != "" {
		t.Errorf("soft: %s", diff)
	}
}

func TestDetection(t *testing.T) {
	t.Parallel()
	// Anchors that are the boxes themselves: zero offsets.
	anchors := f32([]int{3, 4}, 0.5, 0.5, 1, 1, 0.5, 0.55, 1, 1, 0.5, 10.5, 1, 1)
	scores := f32([]int{1, 3, 3}, 0, 0.9, 0.8, 0, 0.75, 0.72, 0, 0.6, 0.5)
	common := map[string]any{
		"max_detections": int64(3), "max_classes_per_detection": int64(1), "num_classes": int64(2), "nms_score_threshold": 0.0, "nms_iou_threshold": 0.5,
		"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0,
	}
	for _, tt := range []struct {
		name    string
		regular bool
		classes []float32
		scores  []float32
		n       float32
	}{
		{"fast", false, []float32{0, 0, 0}, []float32{0.9, 0.6, 0}, 2},
		{"regular", true, []float32{0, 1, 0}, []float32{0.9, 0.8, 0.6}, 3},
	} {
		common["use_regular_nms"] = tt.regular
		got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "TFLite_Detection_PostProcess", Attrs: options(t, common), Outputs: 4}, tensor.New(tensor.Float32, 1, 3, 4), scores, anchors)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.classes, tensor.Of[float32](got[1])); diff != "" {
			t.Errorf("%s: classes %s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.scores, tensor.Of[float32](got[2])); diff != "" {
			t.Errorf("%s: scores %s", tt.name, diff)
		}
		if n := tensor.Of[float32](got[3])[0]; n != tt.n {
			t.Errorf("%s: %v detections", tt.name, n)
		}
		if diff := cmp.Diff([]float32{0, 0, 1, 1}, tensor.Of[float32](got[0])[:4]); diff != "" {
			t.Errorf("%s: first box %s", tt.name, diff)
		}
	}
}

// TestLandmarks finds the crop of a square of landmarks that is turned by a
// quarter, and carries the crop's corners back to the landmarks.
func TestLandmarks(t *testing.T) {
	t.Parallel()
	points := f32([]int{1, 4, 3}, 10, 10, 0, 10, 30, 0, 30, 10, 0, 30, 30, 0)
	got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "Landmarks2TransformMatrix", Attrs: options(t, map[string]any{
		"left_rotation_idx": int64(0), "right_rotation_idx": int64(1), "target_rotation_radians": 0.0, "output_width": int64(4), "output_height": int64(4),
		"scale_x": 1.0, "scale_y": 1.0, "subset_idxs": []any{int64(0), int64(1), int64(2), int64(3)},
	})}, points)
	if err != nil {
		t.Fatal(err)
	}
	m := affineOf(tensor.Of[float32](got[0]))
	// Left to right runs down the image, and so does the crop's x.
	for _, tt := range [][4]float32{{0, 2, 20, 10}, {4, 2, 20, 30}, {2, 2, 20, 20}} {
		x, y := m.at(tt[0], tt[1])
		if !optest.Within(float64(x), float64(tt[2]), 1e-4, 0) || !optest.Within(float64(y), float64(tt[3]), 1e-4, 0) {
			t.Errorf("(%v, %v) of the crop lies at (%v, %v), want (%v, %v)", tt[0], tt[1], x, y, tt[2], tt[3])
		}
	}
}

func TestWarp(t *testing.T) {
	t.Parallel()
	image := f32([]int{1, 2, 2, 1}, 1, 2, 3, 4)
	shift := f32([]int{1, 4, 4}, 1, 0, 0, 0.5, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1)
	got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "TransformTensorBilinear", Version: 2, Attrs: options(t, map[string]any{"output_height": int64(2), "output_width": int64(2)})}, image, shift)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float32{1.5, 1, 3.5, 2}, tensor.Of[float32](got[0])); diff != "" {
		t.Error(diff)
	}
}

func TestUnpooling(t *testing.T) {
	t.Parallel()
	// 2x2 windows with a stride of 2 and valid padding, as words.
	a := graph.Attrs{"custom_options": []byte{2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}}
	x := f32([]int{1, 2, 4, 1}, 1, 5, 3, 2, 4, 2, 9, 1)
	p, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "MaxPoolingWithArgmax2D", Attrs: a, Outputs: 2}, x)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]float32{{5, 9}, {1, 2}}, [][]float32{tensor.Of[float32](p[0]), tensor.Of[float32](p[1])}); diff != "" {
		t.Error(diff)
	}
	u, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "MaxUnpooling2D", Attrs: a}, p[0], p[1])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float32{0, 5, 0, 0, 0, 0, 9, 0}, tensor.Of[float32](u[0])); diff != "" {
		t.Error(diff)
	}
}

// TestPose decodes one person whose keypoints all lie in one cell.
func TestPose(t *testing.T) {
	t.Parallel()
	heat, short, mid := tensor.New(tensor.Float32, 1, 3, 3, keypoints), tensor.New(tensor.Float32, 1, 3, 3, 2*keypoints), tensor.New(tensor.Float32, 1, 3, 3, 4*len(bones))
	for i, v := 0, tensor.Of[float32](heat); i < len(v); i++ {
		v[i] = -5
		if i/keypoints == 4 {
			v[i] = 5
		}
	}
	for k := range keypoints { // one pixel right of the cell's centre
		tensor.Of[float32](short)[4*2*keypoints+keypoints+k] = 1
	}
	got, err := optest.Run(Defs(), optest.Node{Domain: graph.TFLiteCustom, Op: "PosenetDecoderOp", Attrs: options(t, map[string]any{
		"max_detections": int64(2), "score_threshold": 0.5, "stride": int64(16), "nms_radius": 20.0,
	}), Outputs: 4}, heat, short, mid)
	if err != nil {
		t.Fatal(err)
	}
	if n := tensor.Of[float32](got[3])[0]; n != 1 {
		t.Fatalf("%v poses", n)
	}
	for k := range keypoints {
		if y, x := tensor.Of[float32](got[0])[2*k], tensor.Of[float32](got[0])[2*k+1]; y != 16 || x != 17 {
			t.Errorf("keypoint %d at %v, %v", k, y, x)
		}
	}
}
