package sensiml

// Figures are in base units: counts of the device's counter, seconds, samples of a sensor. What is
// not known is nil.

// Result is what a device said of its models.
type Result struct {
	// Unit of the counts: "cycles" of the processor, or "ns" where the pack runs on a computer.
	Unit string `json:"unit"`
	// ClockHz made seconds of cycles, nil where nobody gave it.
	ClockHz *float64 `json:"clock_hz,omitzero"`
	// Runs is the number of inferences with figures, of all models, without warm-up.
	Runs int `json:"runs"`
	// Models in the order of their numbers; those of the pack that said nothing included.
	Models []ModelResult `json:"models"`
	// Messages, Repaired and Bytes are what was read; Rejected what was not, by reason.
	Messages int64            `json:"messages"`
	Repaired int64            `json:"repaired,omitzero"`
	Bytes    int64            `json:"bytes"`
	Rejected map[Reason]int64 `json:"rejected,omitzero"`
	// Findings are remarks on the result, the most important ones first.
	Findings []Finding `json:"findings,omitzero"`
	// Incomplete says why the run ended before it had what was asked for, "" where it did not.
	Incomplete string `json:"incomplete,omitzero"`
}

// Finding is one remark.
type Finding struct {
	// ID names the rule, such as "sensiml.outlier".
	ID string `json:"id"`
	// Warning says that figures may be wrong or missing; other findings explain.
	Warning bool   `json:"warning,omitzero"`
	Text    string `json:"text"`
}

// ModelResult is what is known about one model.
type ModelResult struct {
	Index int    `json:"index"`
	Name  string `json:"name,omitzero"`
	Type  string `json:"type,omitzero"`
	// Layout says how the slots are known.
	Layout Layout `json:"layout"`
	// Runs is the number of inferences with figures, Warmup how many before them were left out.
	Runs   int `json:"runs"`
	Warmup int `json:"warmup,omitzero"`
	// Banks is the number of segments in a cascade, 1 without one. Figures of generators are of one
	// segment.
	Banks int `json:"banks,omitzero"`
	// Features are the generators in the order in which the device runs them.
	Features []Row `json:"features,omitzero"`
	// Classifier is the classifier, nil where the device said nothing about it.
	Classifier *Row `json:"classifier,omitzero"`
	// Whole is the sum over generators and classifier in each inference. Partial says that it lacks
	// generators which were not reported, so that it is the least that it can be. Segmenter,
	// transforms and scaling are never in it: the firmware does not time them.
	Whole   *Row `json:"whole,omitzero"`
	Partial bool `json:"partial,omitzero"`
	// ByGenerator, BySensor and ByCategory are sums over generators in each inference.
	ByGenerator []Row `json:"by_generator,omitzero"`
	BySensor    []Row `json:"by_sensor,omitzero"`
	ByCategory  []Row `json:"by_category,omitzero"`
	// Classes counts the results by class, Results is their number.
	Classes []ClassCount `json:"classes,omitzero"`
	Results int          `json:"results,omitzero"`
	// Values describes the results of a regression.
	Values *Stats `json:"values,omitzero"`
	// SegmentLength describes the lengths of the segments, in samples.
	SegmentLength *Stats `json:"segment_length,omitzero"`
	// Load is the time of an inference as a part of the time that passes between two, nil where
	// window step, sample rate or clock are not known.
	Load *float64 `json:"load,omitzero"`
	// Outcomes are the results themselves, the first some thousand of them.
	Outcomes []Outcome `json:"-"`

	// laid is the layout that was used, for arrays of so many figures.
	laid   *Model
	length int
}

// State says whether a figure came.
type State string

// States of rows.
const (
	// Reported: the device sent the figure.
	Reported State = "reported"
	// NotReported: the slot lies beyond the array that the device sends.
	NotReported State = "not reported"
	// NoSlot: nothing tells in which slot the figure stands.
	NoSlot State = "slot not known"
	// Empty: the slot was sent and never held a figure.
	Empty State = "empty"
)

// Row is the figures of a generator, of the classifier, or of a sum.
type Row struct {
	Name string `json:"name"`
	// Function, Columns, Params and Category are those of the generator.
	Function string   `json:"function,omitzero"`
	Columns  []string `json:"columns,omitzero"`
	Params   []Param  `json:"params,omitzero"`
	Category string   `json:"category,omitzero"`
	// Slot is where the figure stands in the array, nil for a sum or where it is not known.
	Slot  *int  `json:"slot,omitzero"`
	State State `json:"state,omitzero"`
	// Members is the number of generators in a sum, Missing how many of them were not reported.
	Members int `json:"members,omitzero"`
	Missing int `json:"missing,omitzero"`
	// Cycles and Time (seconds) are the figures; each is nil where it is not known.
	Cycles *Stats `json:"cycles,omitzero"`
	Time   *Stats `json:"time_s,omitzero"`
	// Share is the part of the whole, 0 to 1; nil for the whole itself and where it is not known.
	Share *float64 `json:"share,omitzero"`

	// each is the value in each inference, NaN if absent. described are the values that
	// the figures describe, as counts.
	each, described []float64
}

// Stats describes the values of a figure. What was left out is in none of them.
type Stats struct {
	N      int     `json:"n"`
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P5     float64 `json:"p5"`
	P95    float64 `json:"p95"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Sigma is the sample standard deviation, nil below two values.
	Sigma *float64 `json:"sigma,omitzero"`
	// Low and High enclose the median with at least 95 % confidence, nil below six values.
	Low  *float64 `json:"low,omitzero"`
	High *float64 `json:"high,omitzero"`
	// First is the first value that came, whether it is one of those described or warm-up.
	First *float64 `json:"first,omitzero"`
	// Left counts the values that were left out because they contradict what the device said in the
	// line with times, or lie far outside all others. LeftMin and LeftMax are their extremes.
	Left    int      `json:"left,omitzero"`
	LeftMin *float64 `json:"left_min,omitzero"`
	LeftMax *float64 `json:"left_max,omitzero"`
}

// ClassCount is how often a class was the result.
type ClassCount struct {
	Number int    `json:"number"`
	Label  string `json:"label,omitzero"`
	N      int    `json:"n"`
}

// Outcome is one result.
type Outcome struct {
	Class          *int
	Value          *float64
	Start, Length  *int64
	Vector, Tensor []float64
}
