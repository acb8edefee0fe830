package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/profile"
)

// KindStudy is the kind of the series of studies, whatever kind of job made them.
const KindStudy = "study"

// maxStudy bounds the JSON of a study in bytes.
const maxStudy = 512 << 20

// outcome is what of an outcome of a plan is read.
type outcome struct {
	Speedup *profile.Metric `json:"speedup"`
	Bytes   *float64        `json:"weight_bytes"`
}

// summary is what of a study is read.
type summary struct {
	Model struct {
		Name string `json:"name"`
	} `json:"model"`
	Speeds []struct {
		Target  string `json:"target"`
		Engine  string `json:"engine"`
		Threads int    `json:"threads"`
		Batch   int    `json:"batch"`
		Counted bool   `json:"counted"`
	} `json:"speeds"`
	Plans []struct {
		Name      string   `json:"name"`
		Predicted outcome  `json:"predicted"`
		Measured  *outcome `json:"measured"`
	} `json:"plans"`
	Benches []struct {
		Name   string `json:"name"`
		Points []struct {
			Speedup *profile.Metric `json:"speedup"`
		} `json:"points"`
	} `json:"benches"`
}

// readStudy asks opmeter for the figures of a study.
func (r *Runner) readStudy(ctx context.Context, dir, file string) (*Result, error) {
	text := strings.TrimSuffix(file, studyEnding) + ".json"
	_, warnings, err := r.warned(ctx, dir, []string{"compress", "show", file, "--output=" + text}, nil)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(text)
	if err != nil {
		return nil, err
	}
	var s summary
	err = jsonx.UnmarshalRead(io.LimitReader(f, maxStudy), &s)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("figures of the study: %w", err)
	}
	for i, w := range warnings {
		warnings[i] = strings.TrimPrefix(w, filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file))+": ")
	}
	damage := strings.ToValidUTF8(strings.Join(warnings, "; "), "\ufffd")
	if len(damage) > longest {
		damage = strings.ToValidUTF8(damage[:longest-len("…")], "") + "…"
	}
	return &Result{File: file, Series: s.series(), Figures: s.figures(), Damage: damage}, nil
}

// series says what a study is of, by its last performance profile.
func (s *summary) series() store.Series {
	out := store.Series{Kind: KindStudy, Model: s.Model.Name}
	if len(s.Speeds) == 0 {
		return out
	}
	last := &s.Speeds[len(s.Speeds)-1]
	out.Target = last.Target
	if last.Target == "host" && !last.Counted {
		out.Engine, _, _ = strings.Cut(last.Engine, " ")
		if out.Engine == "" {
			out.Engine = "opmeter"
		}
	}
	var settings []string
	if last.Threads > 0 {
		settings = append(settings, fmt.Sprintf("threads=%d", last.Threads))
	}
	if last.Batch > 0 {
		settings = append(settings, fmt.Sprintf("batch=%d", last.Batch))
	}
	out.Settings = strings.Join(settings, " ")
	return out
}

// figures are those of the last plan, as far as they are known. A benchmark is better than what the
// plan measured, and that is better than its prediction.
func (s *summary) figures() (out []store.Figure) {
	if len(s.Plans) == 0 {
		return nil
	}
	last := &s.Plans[len(s.Plans)-1]
	speedup := last.Predicted.Speedup
	if last.Measured != nil && last.Measured.Speedup != nil {
		speedup = last.Measured.Speedup
	}
	for _, b := range s.Benches {
		if b.Name == last.Name && len(b.Points) > 0 && b.Points[0].Speedup != nil {
			speedup = b.Points[0].Speedup
		}
	}
	if v, ok := speedup.Best(); ok {
		f := store.Figure{Name: "speedup", Value: v}
		if speedup.CI95 != nil {
			f.Low, f.High = &speedup.CI95[0], &speedup.CI95[1]
		}
		out = append(out, f)
	}
	if last.Predicted.Bytes != nil {
		out = append(out, store.Figure{Name: "compressed_weights_bytes", Value: *last.Predicted.Bytes})
	}
	return out
}
