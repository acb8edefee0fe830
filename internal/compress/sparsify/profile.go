package sparsify

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
)

// Measurements are values by level, in stored order; a key is a sparsity in Python's format.
type Measurements = jsonx.Object[float64]

// Measurement is one of them.
type Measurement = jsonx.Member[float64]

// Profile is a performance or a loss profile as Sparsify stores it. Times are in seconds.
type Profile struct {
	Name string `json:"name,omitzero"`
	// Of performance profiles:
	BatchSize                int      `json:"batch_size,omitzero"`
	CoreCount                int      `json:"core_count,omitzero"`
	InstructionSets          []string `json:"instruction_sets,omitempty"`
	IterationsPerCheck       int      `json:"iterations_per_check,omitzero"`
	WarmupIterationsPerCheck int      `json:"warmup_iterations_per_check,omitzero"`
	// Of both, and of loss profiles: "weight_magnitude" or "one_shot", and "unstructured",
	// "block_2", "block_4", "channel" or "filter".
	PruningEstimations    bool            `json:"pruning_estimations"`
	PruningEstimationType string          `json:"pruning_estimation_type,omitzero"`
	PruningStructure      string          `json:"pruning_structure,omitzero"`
	QuantizedEstimations  bool            `json:"quantized_estimations"`
	Analysis              ProfileAnalysis `json:"analysis"`
}

// ProfileAnalysis holds the figures. Quantization is null in all files.
type ProfileAnalysis struct {
	Baseline     *Baseline      `json:"baseline"`
	Pruning      *PruningSeries `json:"pruning"`
	Quantization *PruningSeries `json:"quantization"`
}

// Baseline is of the unchanged model.
type Baseline struct {
	Model ModelBaseline `json:"model"`
	Ops   []OpBaseline  `json:"ops"`
}

// ModelBaseline is one figure of the model.
type ModelBaseline struct {
	Measurement float64 `json:"measurement"`
}

// OpBaseline is one figure of an operator.
type OpBaseline struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Index       *int    `json:"index"`
	Measurement float64 `json:"measurement"`
}

// PruningSeries is by level.
type PruningSeries struct {
	Model Series     `json:"model"`
	Ops   []OpSeries `json:"ops"`
}

// Series are values by level. BaselineKey is the level of the unpruned run: for a layer that was
// already pruned its own sparsity, such as "0.83".
type Series struct {
	BaselineKey  string       `json:"baseline_measurement_key"`
	Measurements Measurements `json:"measurements"`
}

// OpSeries are those of an operator.
type OpSeries struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Index *int   `json:"index"`
	Series
}

// baseline is the unpruned value.
func (s *Series) baseline() (float64, bool) { return s.Measurements.Get(s.BaselineKey) }

// times returns the baseline time of the model and the unpruned one of the pruning runs.
func (p *Profile) times() (base, dense float64, ok bool) {
	if p == nil || p.Analysis.Baseline == nil {
		return 0, 0, false
	}
	base = p.Analysis.Baseline.Model.Measurement
	if p.Analysis.Pruning != nil {
		dense, ok = p.Analysis.Pruning.Model.baseline()
	}
	return base, dense, ok
}

// level reads a key.
func level(key string) (float64, bool) {
	v, err := strconv.ParseFloat(key, 64)
	return v, err == nil && v >= 0 && v <= 1
}

// Key formats a level as Python does.
func Key(level float64) string {
	s := strconv.FormatFloat(level, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// JSON writes the profile as Sparsify's server sends and takes it.
func (p *Profile) JSON() ([]byte, error) { return jsonx.MarshalIndent(p) }

// ParseProfile reads a profile, or its analysis alone. Errors name the file and the place.
func ParseProfile(data []byte, file string) (*Profile, error) {
	bad := func(format string, args ...any) (*Profile, error) {
		return nil, fmt.Errorf("%s: a profile of Sparsify was expected: %w", file, fmt.Errorf(format, args...))
	}
	p := &Profile{}
	if err := jsonx.Unmarshal(data, p); err != nil {
		return bad("%w", err)
	}
	if p.Analysis.Baseline == nil && p.Analysis.Pruning == nil {
		if err := jsonx.Unmarshal(data, &p.Analysis); err != nil {
			return bad("%w", err)
		}
	}
	if p.Analysis.Baseline == nil && p.Analysis.Pruning == nil {
		return bad("it has neither baseline nor pruning")
	}
	if b := p.Analysis.Baseline; b != nil {
		if b.Model.Measurement < 0 {
			return bad("analysis.baseline.model.measurement: %v is below 0", b.Model.Measurement)
		}
		for i, op := range b.Ops {
			if op.ID == "" || op.Measurement < 0 {
				return bad("analysis.baseline.ops[%d]: an id and a measurement of at least 0 were expected", i)
			}
		}
	}
	if q := p.Analysis.Pruning; q != nil {
		if err := q.Model.check(true); err != nil {
			return bad("analysis.pruning.model: %w", err)
		}
		for i, op := range q.Ops {
			if op.ID == "" {
				return bad("analysis.pruning.ops[%d]: an id was expected", i)
			}
			if err := op.check(false); err != nil {
				return bad("analysis.pruning.ops[%d] (%s): %w", i, op.ID, err)
			}
		}
	}
	return p, nil
}

func (s *Series) check(mayLack bool) error {
	if len(s.Measurements) == 0 && mayLack {
		return nil
	}
	for _, m := range s.Measurements {
		if _, ok := level(m.Name); !ok {
			return fmt.Errorf("measurements: %q is not a level from 0 to 1", m.Name)
		}
		if math.IsInf(m.Value, 0) || math.IsNaN(m.Value) {
			return fmt.Errorf("measurements: the value at %s is not finite", m.Name)
		}
	}
	if _, ok := s.baseline(); !ok {
		return fmt.Errorf("baseline_measurement_key %q is not a key of measurements", s.BaselineKey)
	}
	return nil
}
