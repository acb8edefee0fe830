// Package divergence describes how the outputs of layers differ between two models, or between two
// engines that run one model, and at which layer they part.
package divergence

import (
	"math"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
)

// SchemaV1 names the format of a report as JSON.
const SchemaV1 = "opmeter/divergence/v1"

// Report compares the outputs of all layers for the same inputs.
type Report struct {
	Schema string `json:"schema"`
	// Sides are the two that are compared. Errors are those of the second, relative to the first.
	Sides [2]Side `json:"sides"`
	// Inputs says what was fed: "random", "zeros" or "files". Seed is that of random inputs.
	Inputs string `json:"inputs"`
	Seed   uint64 `json:"seed"`
	// LimitBytes is how many bytes of outputs of each side were held at a time, those of one row
	// apart that has more. Passes is how often the models ran for that.
	LimitBytes int64   `json:"limit_bytes"`
	Passes     int64   `json:"passes"`
	Verdict    Verdict `json:"verdict"`
	// Rows has a row for each pair of layers of the main graphs, in the order of execution.
	Rows []Row `json:"rows"`
	// Outputs are the differences of the models' outputs.
	Outputs []profile.Difference `json:"outputs"`
	// Unlike says that an external engine computes other outputs of the model if the outputs of
	// layers are outputs, too: Rows show the latter, Outputs those of the unchanged model.
	Unlike bool `json:"unlike,omitzero"`
	// Notes are sentences about what was left out or changed.
	Notes []string `json:"notes,omitzero"`
}

// Side is a model and the engine that ran it.
type Side struct {
	// Name is what the side is called.
	Name string `json:"name"`
	// Model is the model's name, Format "tflite" or "onnx".
	Model  string `json:"model"`
	Format string `json:"format"`
	SHA256 string `json:"sha256,omitzero"`
	// Engine is the engine that ran it, with its version.
	Engine        string `json:"engine"`
	EngineVersion string `json:"engine_version,omitzero"`
}

// Layer refers to a layer of a side: a node of the model's main graph.
type Layer struct {
	Index int64  `json:"index"`
	Op    string `json:"op"`
	Name  string `json:"name,omitzero"`
}

// Row is layers of both sides that do the same work.
type Row struct {
	// A and B are the layers of the sides; one of them is empty for what only one side has.
	A []Layer `json:"a,omitzero"`
	B []Layer `json:"b,omitzero"`
	// Kind says how the layers differ, Confidence how they were found. Certain says that nothing
	// speaks for another pair.
	Kind       align.Kind         `json:"kind"`
	Confidence profile.Confidence `json:"confidence,omitzero"`
	Certain    bool               `json:"certain"`
	// Output is the difference of the output, with the errors of all layers before it. If there
	// are several outputs, it is the largest. Absent if it was not computed; with a cause if it
	// cannot be compared.
	Output *profile.Difference `json:"output,omitzero"`
	// Input is the lowest signal-to-noise ratio of the inputs in decibels, absent if they are equal
	// or unknown.
	Input *float64 `json:"input_snr_db,omitzero"`
	// Own is the error that the row adds itself: the difference between its output and what the
	// layers of the first side compute from the same inputs. Absent if that was not possible.
	Own *profile.Difference `json:"own,omitzero"`
	// OwnFrom says where Own comes from, absent if Own is.
	OwnFrom Origin `json:"own_from,omitzero"`
	// Doubtful says that the pair is not certain and differs by far more than the outputs of the
	// models do: the layers are probably no partners, and the verdict leaves them out.
	Doubtful bool `json:"doubtful,omitzero"`
	// Layout is the order of the axes in which the second side was read, if that of the first side
	// differs, such as "0,3,1,2".
	Layout string `json:"layout,omitzero"`
	// Cause says why the outputs, or else the row's own error, are unknown.
	Cause *profile.Cause `json:"cause,omitzero"`
}

// Origin says where the own error of a row comes from.
type Origin string

// Origins.
const (
	// Computed says that the layers of one side were run on the inputs of the other.
	Computed Origin = "computed"
	// Accumulated says that the error of the output is ten times that of the inputs or more, so
	// that it counts as the row's own.
	Accumulated Origin = "accumulated"
)

// Code is the code of a verdict.
type Code string

// Codes of verdicts.
const (
	Equal    Code = "equal"    // all outputs are equal bit by bit
	Rounding Code = "rounding" // no more than rounding explains
	Parts    Code = "parts"    // one row adds an error that dominates
	Gradual  Code = "gradual"  // many rows add errors of similar size
	Unknown  Code = "unknown"  // no outputs of rows, or none of the models, could be compared
)

// Verdict says where the outputs part.
type Verdict struct {
	Code Code `json:"code"`
	// Row is the row at which they part, or that adds the largest error. Absent if none adds one.
	Row *int64 `json:"row,omitzero"`
	// OwnSNR is the signal-to-noise ratio of the error that it adds, in decibels. Absent if the
	// error is infinite, as that of NaN.
	OwnSNR *float64 `json:"own_snr_db,omitzero"`
	// Typical is that of the median of the other rows that add one, Before the lowest of the
	// outputs before the row. Absent if none of these differs.
	Typical *float64 `json:"typical_snr_db,omitzero"`
	Before  *float64 `json:"before_snr_db,omitzero"`
	// Amplified says that no row adds more than the number format explains, but the outputs of the
	// models differ by more: layers amplify the errors of those before them.
	Amplified bool `json:"amplified,omitzero"`
	// Rows that were compared, and those of them with equal outputs. Added are the rows that add an
	// error.
	// Doubtful rows are in none of these.
	Compared int64 `json:"compared"`
	Same     int64 `json:"equal"`
	Added    int64 `json:"added"`
	Doubtful int64 `json:"doubtful,omitzero"`
}

// Noise returns the power of a difference relative to that of the signal, 0 for equal outputs and
// infinity where numbers face something else. It is false if the outputs were not compared.
func Noise(d *profile.Difference) (float64, bool) {
	switch {
	case d == nil || d.State == profile.NotComparable:
		return 0, false
	case d.NotFinite != nil && *d.NotFinite > 0:
		return math.Inf(1), true
	case d.SNR != nil:
		return math.Pow(10, -*d.SNR/10), true
	case d.State == profile.Equal || d.MaxAbsolute != nil && *d.MaxAbsolute == 0:
		return 0, true
	case d.MaxAbsolute == nil && d.Same != nil && *d.Same < 1: // texts
		return 1, true
	case d.MaxAbsolute == nil:
		return 0, false
	}
	return 1, true // the reference is zero: the whole output is error
}

// decibels is the signal-to-noise ratio of a noise, nil if it is infinite either way.
func decibels(noise float64) *float64 {
	if !(noise > 0) || math.IsInf(noise, 0) {
		return nil
	}
	return new(-10 * math.Log10(noise))
}
