package profile

import "fmt"

// OtherEngine is a short measurement of the same model with another engine on the same computer,
// with the same inputs and threads. The profile itself holds nothing else of that engine.
type OtherEngine struct {
	// Engine is the engine's name on the command line, such as "onnxruntime", Title its display
	// name, Version that of its library.
	Engine  string `json:"engine"`
	Title   string `json:"title"`
	Version string `json:"version,omitzero"`
	// Cause says why there are no figures.
	Cause *Cause `json:"cause,omitzero"`
	// Latency is the time of an inference.
	Latency *Metric `json:"latency_s,omitzero"`
	// Operators lists the shares of the operators, the greatest first, as far as the engine
	// reports them. An operator has the name that it has in the model; what the engine inserted
	// has the engine's.
	Operators []OperatorShare `json:"operators,omitzero"`
}

// OperatorShare is the part of an inference that an operator takes in all its layers.
type OperatorShare struct {
	// Op is the operator, with its domain where that is not the format's own.
	Op string `json:"op"`
	// Share is its fraction of the sum of all layers' times, 0 to 1.
	Share float64 `json:"share"`
}

// Name returns the engine's display name with its version.
func (o *OtherEngine) Name() string {
	if o.Version == "" {
		return o.Title
	}
	return o.Title + " " + o.Version
}

func (c *checker) otherEngine(o *OtherEngine) {
	if o == nil {
		return
	}
	const at = "other_engine"
	c.need(at+".engine", o.Engine)
	c.need(at+".title", o.Title)
	if o.Cause != nil {
		c.cause(at+".cause.code", o.Cause.Code)
	}
	if (o.Cause == nil) != (o.Latency != nil) {
		c.fail(at, "needs either latency_s or cause")
	}
	c.metrics(at, metricNamed{"latency_s", o.Latency})
	for i := range o.Operators {
		c.need(fmt.Sprintf("%s.operators[%d].op", at, i), o.Operators[i].Op)
		c.fraction(fmt.Sprintf("%s.operators[%d].share", at, i), &o.Operators[i].Share)
	}
}
