package resize

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestRoiAlignTurned compares means of all channels at once, in float32, with those of one
// channel after the other in float64. Regions are inside of images, across their edges and beyond
// them, and some have no size or a negative one.
func TestRoiAlignTurned(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		x := tensor.New(tensor.Float64, draw("images", 1, 2), draw("channels", 1, 19), draw("height", 1, 9), draw("width", 1, 9))
		tensor.Fill(x, func(i int) float64 { return float64(i*i%23-11) / 8 })
		rois := tensor.New(tensor.Float64, draw("regions", 0, 4), 4)
		for i := range rois.Len() {
			tensor.Of[float64](rois)[i] = float64(draw("corner", -12, 90)) / 4
		}
		batch := tensor.New(tensor.Int64, rois.Shape[0])
		for i := range batch.Len() {
			tensor.Of[int64](batch)[i] = int64(draw("image", 0, x.Shape[0]-1))
		}
		node := optest.Node{Op: "RoiAlign", Version: 16, Attrs: graph.Attrs{
			"output_height": int64(draw("rows", 1, 4)), "output_width": int64(draw("cols", 1, 4)),
			"sampling_ratio": int64(draw("samples", 0, 3)), "spatial_scale": float32(0.5),
			"coordinate_transformation_mode": rapid.SampledFrom([]string{"half_pixel", "output_half_pixel"}).Draw(t, "mode"),
		}}
		want, err := optest.Run(Defs(), node, x, rois, batch)
		if err != nil {
			t.Fatal(err)
		}
		got, err := optest.Run(Defs(), node, single(x), single(rois), batch)
		if err != nil {
			t.Fatal(err)
		}
		// Up to 20 by 20 pixels are added up in float32.
		if why := optest.Differ(got[0], tensor.Of[float64](want[0]), 1e-5, 1e-5); why != "" {
			t.Fatal(why)
		}
	})
}

func single(x *tensor.Tensor) *tensor.Tensor {
	y := tensor.New(tensor.Float32, x.Shape...)
	for i, v := range tensor.Of[float64](x) {
		tensor.Of[float32](y)[i] = float32(v)
	}
	return y
}
