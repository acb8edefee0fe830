package compress

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/opmeter/opmeter/internal/compress/sparsify"
	"github.com/opmeter/opmeter/study"
)

// Exports lists what can be written for other tools.
func Exports() []string {
	return []string{"sparsify-analysis", "sparsify-perf", "sparsify-loss", "recipe", "recipe-json", "nncf", "neural-compressor"}
}

// ExportOptions say what is written.
type ExportOptions struct {
	// Kind is one of [Exports].
	Kind string
	// Speed, Loss and Plan name what it is of, "" for the last ones.
	Speed, Loss, Plan string
	// Structure is that of which profiles are written, "" for single weights.
	Structure study.Structure
	// Compat counts operations as Sparsify does, defects included.
	Compat bool
	// Epochs is the length of the training of a recipe, 0 for Sparsify's; InitialRate and FinalRate are
	// learning rates, nil for none.
	Epochs                 int
	InitialRate, FinalRate *float64
}

// Export writes a part of a study for another tool; lost is what that cannot say.
func (j *Job) Export(o ExportOptions) (data []byte, lost []string, err error) {
	s := j.Study()
	sp, lo, err := j.profiles(o.Speed, o.Loss)
	if err != nil {
		return nil, nil, err
	}
	structure := o.Structure
	if structure == study.Dense {
		structure = study.Unstructured
	}
	switch o.Kind {
	case "sparsify-analysis":
		data, err = sparsify.Analyse(j.m, j.dims, s.Layers, o.Compat).JSON()
	case "sparsify-perf":
		if sp == nil {
			return nil, nil, wrong("Speed", "the study has no performance profile")
		}
		p := sparsify.FromSpeed(sp, s.Layers, structure)
		if p == nil {
			return nil, nil, wrong("Speed", "the performance profile %q has no times", sp.Name)
		}
		data, err = p.JSON()
	case "sparsify-loss":
		if lo == nil {
			return nil, nil, wrong("Loss", "the study has no loss profile")
		}
		data, err = sparsify.FromLoss(lo, s.Layers, structure).JSON()
	case "recipe", "recipe-json", "nncf", "neural-compressor":
		return j.planned(&o)
	default:
		return nil, nil, wrong("Kind", "no kind %q: use one of %v", o.Kind, Exports())
	}
	return data, nil, err
}

// planned writes what follows from a plan.
func (j *Job) planned(o *ExportOptions) (data []byte, lost []string, err error) {
	p, err := j.plan(o.Plan)
	if err != nil {
		return nil, nil, err
	}
	layers := j.Study().Layers
	var kept []int
	for _, c := range p.Choices {
		if c.Change.IsZero() {
			kept = append(kept, c.Layer)
		}
	}
	switch o.Kind {
	case "nncf":
		data, err = sparsify.NNCF(layers, kept)
		return data, nil, err
	case "neural-compressor":
		return sparsify.NeuralCompressor(layers, kept), nil, nil
	}
	r, lost := sparsify.NewRecipe(p, layers, sparsify.Training{Epochs: o.Epochs, InitialRate: o.InitialRate, FinalRate: o.FinalRate})
	if o.Kind == "recipe-json" {
		data, err = r.JSON()
		return data, lost, err
	}
	return r.YAML(), lost, nil
}

// Imported says what a file of another tool became.
type Imported struct {
	// Kind is "speed", "loss", "plan" or "excluded", Name that in the study.
	Kind, Name string
	// Excluded are layers, of lists of them.
	Excluded []int
	// Unmatched are names that no layer has, and what was not understood.
	Unmatched []string
}

// Import reads a profile of Sparsify or a recipe into the study, or a list of layers to leave out. name is that in the study, "" for
// a usual one.
func (j *Job) Import(data []byte, file, name string) (*Imported, error) {
	layers := j.Study().Layers
	text := bytes.TrimSpace(data)
	if bytes.HasPrefix(text, []byte("{")) {
		if p, err := sparsify.ParseProfile(data, file); err == nil {
			return j.importProfile(p, name)
		}
	}
	r, err := sparsify.ParseRecipe(data, file)
	if err == nil && len(r.Modifiers)+len(r.Ignored) > 0 {
		p, unmatched, err := r.Plan(layers)
		if err != nil {
			return nil, err
		}
		if p.Name = name; name == "" {
			p.Name = "recipe"
		}
		p.Created = now()
		return &Imported{Kind: "plan", Name: p.Name, Unmatched: append(unmatched, r.Ignored...)}, j.File.Append(study.Record{Plan: p})
	}
	x, err2 := sparsify.ParseExclusions(data, file)
	if err2 == nil {
		out := &Imported{Kind: "excluded"}
		out.Excluded, out.Unmatched = x.Match(layers)
		return out, nil
	}
	if bytes.HasPrefix(text, []byte("{")) {
		_, err = sparsify.ParseProfile(data, file)
	}
	if err == nil {
		err = err2
	}
	if _, ok := errors.AsType[*sparsify.FileError](err); !ok {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return nil, err
}

// importProfile takes a profile of Sparsify over.
func (j *Job) importProfile(p *sparsify.Profile, name string) (*Imported, error) {
	layers := j.Study().Layers
	if p.PruningEstimationType != "" {
		s, unmatched := sparsify.ToLoss(p, layers)
		if s.Name = name; name == "" {
			s.Name = "sparsify-loss"
		}
		s.Created, s.Done = now(), true
		return &Imported{Kind: "loss", Name: s.Name, Unmatched: unmatched}, j.File.Append(study.Record{Loss: s})
	}
	s, unmatched := sparsify.ToSpeed(p, layers)
	if s.Name = name; name == "" {
		s.Name = "sparsify-perf"
	}
	s.Created, s.Done = now(), true
	return &Imported{Kind: "speed", Name: s.Name, Unmatched: unmatched}, j.File.Append(study.Record{Speed: s})
}
