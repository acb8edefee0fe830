package litert

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/guest"
	"github.com/opmeter/opmeter/internal/join"
	"github.com/opmeter/opmeter/profile"
)

func TestSurvey(t *testing.T) {
	lib, err := Open(os.Getenv("OPMETER_TEST_ENGINES") + "/ai_edge_litert-2.3.0/ai_edge_litert/libLiteRt.so")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%+v\n", lib.About())
	var files []string
	for _, d := range []string{"real", "synthetic", "mcu"} {
		f, _ := filepath.Glob(os.Getenv("OPMETER_SHARED") + "/models/" + d + "/*.tflite")
		files = append(files, f...)
	}
	if m := os.Getenv("M"); m != "" {
		files, _ = filepath.Glob(os.Getenv("OPMETER_SHARED") + "/models/" + m)
	}
	for _, f := range files {
		survey(t, lib, f)
	}
}

func survey(t *testing.T, lib guest.Library, f string) {
	name := filepath.Base(f)
	m, err := opmeter.Open(f)
	if err != nil {
		fmt.Println(name, "own:", err)
		return
	}
	s, err := opmeter.NewSession(m, opmeter.RunOptions{})
	if err != nil {
		fmt.Println(name, "own:", err)
		return
	}
	defer s.Close()
	task := &guest.Task{Model: f, Format: "tflite", Threads: 1, Profiled: true, Folder: t.TempDir()}
	for _, x := range s.Inputs() {
		task.Inputs = append(task.Inputs, guest.Tensor{Name: x.Name, DType: x.DType, Shape: x.Shape, Data: append([]byte(nil), x.Data...), Strings: x.Strings})
	}
	if k := os.Getenv("K"); k != "" {
		task.Options = []guest.Option{{Key: "kernel", Value: k}}
	}
	g, err := lib.Load(task)
	if err != nil {
		fmt.Println(name, "LOAD", err)
		return
	}
	defer g.Close()
	p := g.(guest.Profiled)
	for i := 0; i < 20; i++ {
		if err := p.Run(); err != nil {
			fmt.Println(name, "RUN", err)
			return
		}
		if i == 1 {
			p.Forget()
		}
		if err := p.After(-1); err != nil {
			fmt.Println(name, "AFTER", err)
			return
		}
	}
	r, err := p.Recorded()
	if err != nil || r == nil {
		fmt.Println(name, "REC", err, r)
		return
	}
	base, err := opmeter.Count(m, opmeter.Inputs{})
	if err != nil {
		fmt.Println(name, "own count:", err)
		return
	}
	ms := join.Find(base.Layers, r.Profile.Layers, r.Hints)
	join.Fill(r.Profile, base, ms)
	by := map[profile.Confidence]float64{}
	sum := 0.0
	for i := range r.Profile.Layers {
		l := &r.Profile.Layers[i]
		v, _ := l.Latency.Best()
		sum += v
		by[l.Provenance.Confidence] += v
		if os.Getenv("M") != "" {
			fmt.Printf("   %-22s %-40.40s %-60.60s %8.2f %s %d\n", l.Op, l.Name, l.Kernel, v*1e6, l.Provenance.Confidence, len(l.Provenance.SourceNodes))
		}
	}
	diff := ""
	if err := s.Run(context.Background()); err != nil {
		diff = err.Error()
	} else {
		outs, err := g.Outputs()
		if err != nil {
			diff = err.Error()
		}
		for i, o := range outs {
			diff += " " + o.DType + ":" + differ(o, s.Outputs()[i])
		}
	}
	ok := "ok "
	if (by[profile.Exact]+by[profile.ByTensor])/sum < 0.9 {
		ok = "LOW"
	}
	fmt.Printf("%s %-45s %7.1f us exact %.3f tensor %.3f name %.3f order %.3f unknown %.3f %s %v\n", ok, name, sum*1e6, by[profile.Exact]/sum, by[profile.ByTensor]/sum, by[profile.ByName]/sum, by[profile.ByOrder]/sum, by[profile.Unknown]/sum, diff, g.Facts().Settings["delegated"])
}

func differ(a guest.Tensor, b opmeter.Tensor) string {
	if len(a.Data) != len(b.Data) {
		return fmt.Sprintf("size %d %d", len(a.Data), len(b.Data))
	}
	n, big := 0, 0.0
	switch a.DType {
	case "int8", "uint8":
		for i := range a.Data {
			d := math.Abs(float64(int8(a.Data[i])) - float64(int8(b.Data[i])))
			if a.DType == "uint8" {
				d = math.Abs(float64(a.Data[i]) - float64(b.Data[i]))
			}
			if d > 0 {
				n++
			}
			big = max(big, d)
		}
		return fmt.Sprintf("%d/%d max %v", n, len(a.Data), big)
	case "float32":
		top := 0.0
		for i := 0; i+4 <= len(a.Data); i += 4 {
			x, y := f32(a.Data[i:]), f32(b.Data[i:])
			if d := math.Abs(x - y); !(d <= big) {
				big = d
			}
			top = max(top, math.Abs(y))
		}
		return fmt.Sprintf("max %.2g of %.2g", big, top)
	}
	for i := range a.Data {
		if a.Data[i] != b.Data[i] {
			n++
		}
	}
	return fmt.Sprintf("%d bytes of %d", n, len(a.Data))
}

func f32(b []byte) float64 {
	return float64(math.Float32frombits(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24))
}
